// SPDX-License-Identifier: Apache-2.0
//! From the checked system image to the machine of each pCPU.
//!
//! [`Machine::primary`] checks the tables of the system image (not the payloads), once for backend and
//! kernel. Only then does it trust an address in them. If the tables are bad the machine is made with the
//! console alone, so that the kernel can report why.

use crate::board::{BOARD, Board};
use crate::crash::halt;
use crate::machine::Machine;
use crate::physical::Stopwatch;
use crate::sysreg::{self, counter, read_port8, read_port32, write_port8};
use crate::{console, descriptors, mmu, physical, predictions};
use bulkhead_abi::lockdown;
use bulkhead_arch_api::{HostPhys, MAX_PCPUS, PcpuId, class};
use bulkhead_arch_paging::MapError;
use bulkhead_arch_translating::layout::{misplaced, system_image};
use bulkhead_arch_x86_64_core::rtc;
use bulkhead_arch_x86_64_core::time::{NANOS, PIT_HERTZ, PM_HERTZ, Ratio};
use bulkhead_image::layout::{
    CONTROLLER_ACPI_TIMER, CONTROLLER_APIC, ControllerRecord, ROLE_INTERRUPTS, ROLE_TIMER,
};
use bulkhead_image::{Image, ImageError, Portable};
use core::cell::UnsafeCell;

/// Offset of the PM timer from the power management registers (ACPI 6.4, 4.8.2.1; Intel ICH9 13.8.3.3).
const PM_TIMER: u16 = 8;
/// Bits of the PM timer that every board has.
const PM_MASK: u32 = 0xFF_FFFF;
/// The most ticks of the PM timer in a measurement: 10 ms.
const LONGEST: u32 = PM_HERTZ as u32 / 100;
/// A measurement lasts so many times as long as one look at the clocks, or [`LONGEST`].
const LOOKS: u64 = 8192;

/// CPUID: features of AMD-V, and the bit of EDX for FlushByAsid (AMD APM volume 3, E.4.9).
const SVM_FEATURES: u32 = 0x8000_000A;
const FLUSH_BY_ASID: u32 = 1 << 6;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Pages of a permission map of ports (AMD APM volume 2, section 15.10.1).
const MAP_PAGES: usize = 3;

/// Two permission maps of ports, the second one a page after the first: they share the pages in which every
/// access exits. In the first page are the ports of a vCPU that takes the interrupts of its pCPU itself: the
/// master 8259 and the PIT. No other pCPU has a use for them, and their interrupts reach that pCPU
/// alone.
#[repr(C, align(4096))]
struct PortMaps([u8; (1 + MAP_PAGES) * PAGE]);

static PORT_MAPS: PortMaps = {
    let mut maps = [0xFF; (1 + MAP_PAGES) * PAGE];
    // 0x20 and 0x21; 0x40 to 0x43. A bit a port.
    maps[0x20 / 8] &= !0b11;
    maps[0x40 / 8] &= !0b1111;
    PortMaps(maps)
};

/// Returns the address of the permission map of ports for a vCPU that takes interrupts itself.
pub(crate) fn direct_ports() -> u64 {
    (&raw const PORT_MAPS) as u64
}

/// The permission map of model-specific registers.
#[repr(C, align(4096))]
struct RegisterMap([u8; 2 * 4096]);

/// Registers that VMRUN, VMLOAD or VMSAVE switch, so that a guest has them to itself (AMD APM volume 2,
/// 15.5.1 and 15.5.2): SYSENTER, PAT; STAR, LSTAR, CSTAR, SFMASK; FS, GS and kernel GS base.
const OWN: [u32; 11] = [
    0x174,
    0x175,
    0x176,
    0x277,
    0xC000_0081,
    0xC000_0082,
    0xC000_0083,
    0xC000_0084,
    0xC000_0100,
    0xC000_0101,
    0xC000_0102,
];

/// Two bits a register; the second range begins at byte 0x800 (15.11).
static REGISTER_MAP: RegisterMap = {
    let mut map = [0xFF; 2 * 4096];
    let mut index = 0;
    while index < OWN.len() {
        let number = OWN[index];
        let (base, number) = if number >= 0xC000_0000 {
            (0x800, number - 0xC000_0000)
        } else {
            (0, number)
        };
        map[base + number as usize / 4] &= !(3 << (number % 4 * 2));
        index += 1;
    }
    RegisterMap(map)
};

/// Returns the addresses of the permission maps: ports, registers.
pub(crate) fn maps() -> (u64, u64) {
    (
        (&raw const PORT_MAPS) as u64 + PAGE as u64,
        (&raw const REGISTER_MAP) as u64,
    )
}

/// The pages that the hardware wants for each pCPU: where VMRUN saves the host, and the control block for the
/// host's hidden registers.
#[repr(C, align(4096))]
struct HostPages(UnsafeCell<[[u8; 2 * 4096]; MAX_PCPUS]>);

// SAFETY: only the hardware reads and writes them; each pCPU has its own part.
unsafe impl Sync for HostPages {}

#[unsafe(link_section = ".contexts")]
static HOST_PAGES: HostPages = HostPages(UnsafeCell::new([[0; 2 * 4096]; MAX_PCPUS]));

impl Machine {
    /// Returns the boot pCPU's machine, and the system image or its error. Called once, by `entry_points`.
    pub fn primary() -> (Self, Result<Image<'static>, ImageError>) {
        descriptors::fill_handlers();
        descriptors::load(0);
        if mmu::build().is_err() {
            halt(lockdown!("the hypervisor's own memory does not fit its tables"));
        }
        let bytes = system_image();
        console::find(bytes);
        match bulkhead_arch_trust::check(bytes, &class::X86_64, &Portable) {
            Ok(image) => (Self::on_board(&image), Ok(image)),
            Err(error) => (Self::new(PcpuId(0)), Err(error)),
        }
    }

    fn on_board(image: &Image<'_>) -> Self {
        if let Some(reason) = misplaced(image.board()) {
            halt(reason);
        }
        if map_board(image).is_err() {
            halt(lockdown!("the board's map does not fit the tables or the CPU"));
        }
        let mut board = survey(image);
        if board.hardware_ids.first() != Some(&physical::own_initial_id()) {
            halt(lockdown!("the boot CPU is not pCPU 0 of the board"));
        }
        physical::use_by_memory(board.apics[0]);
        let (hertz, timer) = measure(board.power, board.apics[0]);
        board = with_rates(board, hertz, timer);
        BOARD.set(board);
        physical::init_board();
        let mut machine = Self::new(PcpuId(0));
        machine.init();
        machine
    }

    /// Returns the machine of a pCPU that [`bulkhead_arch_api::Cpus::start`] started. Called once per pCPU,
    /// by `entry_points`.
    #[must_use]
    pub fn secondary(index: u64) -> Self {
        descriptors::load(index as usize);
        if let Some(board) = BOARD.get() {
            physical::use_by_memory(board.apics[0]);
        }
        let mut machine = Self::new(PcpuId(index as u8));
        machine.init();
        machine
    }

    /// Switches AMD-V on, and the pCPU's local APIC.
    fn init(&mut self) {
        let pages = (&raw const HOST_PAGES) as u64 + u64::from(self.pcpu.0) * 2 * 4096;
        sysreg::write_msr(sysreg::EFER, sysreg::read_msr(sysreg::EFER) | sysreg::EFER_SVME);
        sysreg::write_msr(sysreg::HOST_SAVE, pages);
        self.host = pages + 4096;
        // SAFETY: the page is this pCPU's, and large enough for a control block.
        unsafe { core::arch::asm!("vmsave rax", in("rax") self.host, options(nostack, preserves_flags)) }
        self.predictions = predictions::of_this_cpu();
        predictions::make_fences_wait();
        physical::init_local();
    }
}

/// Returns the number of address space identifiers of the processor, and whether it can forget the
/// translations of one alone. Ends the start of a processor without AMD-V or nested paging.
fn spaces() -> (u32, bool) {
    let [_, _, features, _] = sysreg::cpuid(0x8000_0001, 0);
    let [last, ..] = sysreg::cpuid(0x8000_0000, 0);
    let [_, spaces, _, own] = if last >= SVM_FEATURES {
        sysreg::cpuid(SVM_FEATURES, 0)
    } else {
        [0; 4]
    };
    if features & 1 << 2 == 0 || own & 1 == 0 || spaces < 3 {
        halt(lockdown!("the CPU has no AMD-V with nested paging"));
    }
    if sysreg::read_msr(sysreg::VM_CR) & sysreg::SVM_DISABLED != 0 {
        halt(lockdown!("the firmware has locked AMD-V"));
    }
    (spaces, own & FLUSH_BY_ASID != 0)
}

fn controller<'i>(image: &Image<'i>, role: u32, kind: u32) -> Option<&'i ControllerRecord> {
    let mut all = image.controllers().iter();
    all.find(|record| record.role.get() == role && record.compatible.get() == kind)
}

fn survey(image: &Image<'_>) -> Board {
    let apic = controller(image, ROLE_INTERRUPTS, CONTROLLER_APIC);
    let timer = controller(image, ROLE_TIMER, CONTROLLER_ACPI_TIMER);
    let (Some(apic), Some(timer)) = (apic, timer) else {
        halt(lockdown!(
            "no timer or no APICs this hypervisor can use in the board's tables"
        ));
    };
    let mut hardware_ids = [u64::MAX; MAX_PCPUS];
    for (slot, record) in hardware_ids.iter_mut().zip(image.pcpus()) {
        *slot = record.hardware_id.get();
    }
    let board = image.board();
    let [local, io, ..] = apic.base;
    let [power, ..] = timer.base;
    let one = Ratio::new(1, 1);
    let (spaces, forgets_own) = spaces();
    Board {
        hardware_ids,
        pool: (board.pool_base.get(), board.pool_size.get()),
        trace: (board.trace_base.get(), board.trace_records.get() as usize),
        apics: [local.get(), io.get()],
        power: power.get() as u16,
        hertz: 1,
        timer: one,
        nanos: one,
        pit: one,
        pm: one,
        from_pit: one,
        epoch: 0,
        spaces,
        forgets_own,
    }
}

/// Adds the rates of clocks. `timer`: ticks of the local APIC's timer in a second.
fn with_rates(board: Board, hertz: u64, timer: u64) -> Board {
    let nanos = Ratio::new(hertz, NANOS);
    Board {
        hertz,
        timer: Ratio::new(hertz, timer),
        nanos,
        pit: Ratio::new(hertz, PIT_HERTZ),
        pm: Ratio::new(hertz, PM_HERTZ),
        from_pit: Ratio::new(PIT_HERTZ, hertz),
        epoch: date().saturating_sub(nanos.apply(counter()) / NANOS),
        ..board
    }
}

/// Measures the ticks of the counter and of the local APIC's timer in a second by the PM timer, from one tick
/// of the PM timer to another. The result is as wrong as a look at the clocks is long, and is rounded to the
/// power of ten above that.
fn measure(power: u16, apic: u64) -> (u64, u64) {
    let read = || read_port32(power + PM_TIMER) & PM_MASK;
    let timer = Stopwatch::start(apic);
    let early = counter();
    // A PM timer that stands still would be waited for in vain; the counter then ends it.
    let is_late = || counter().wrapping_sub(early) >= 1 << 36;
    let mut before = read();
    let start = loop {
        let now = read();
        if now != before || is_late() {
            break now;
        }
        before = now;
    };
    let (from, first) = (counter(), timer.read());
    let (mut passed, mut to, mut last, mut looks) = (0, from, first, 0_u64);
    let mut is_tick = false;
    while !is_late() && !(is_tick && (looks >= LOOKS || passed >= LONGEST)) {
        let now = read().wrapping_sub(start) & PM_MASK;
        is_tick = now != passed;
        (passed, to, last) = (now, counter(), timer.read());
        looks += 1;
    }
    if passed == 0 || last == first {
        halt(lockdown!(
            "the PM timer or the APIC's timer of the board's tables does not count"
        ));
    }
    let in_second = |ticks: u64| {
        let hertz = (u128::from(ticks) * u128::from(PM_HERTZ) / u128::from(passed)) as u64;
        let unit = 10_u64.pow((hertz / looks).max(1).ilog10() + 1);
        ((hertz + unit / 2) / unit * unit).max(unit)
    };
    (in_second(to - from), in_second(u64::from(last - first)))
}

/// Returns the seconds since 1970 of the board's real-time clock.
fn date() -> u64 {
    let read = |index: u8| {
        write_port8(0x70, index);
        rtc::binary(read_port8(0x71))
    };
    let year = 2000 + read(9);
    rtc::seconds(
        year,
        read(8).clamp(1, 12),
        read(7).clamp(1, 31),
        read(4),
        read(2),
        read(0),
    )
}

fn map_board(image: &Image<'_>) -> Result<(), MapError> {
    mmu::map_board(image)?;
    if let Some(apic) = controller(image, ROLE_INTERRUPTS, CONTROLLER_APIC) {
        for (base, size) in apic.base.iter().zip(&apic.size) {
            if size.get() != 0 {
                mmu::map_device(HostPhys(base.get()), size.get())?;
            }
        }
    }
    Ok(())
}
