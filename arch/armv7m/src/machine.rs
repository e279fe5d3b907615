// SPDX-License-Identifier: Apache-2.0
//! The machine: what the kernel holds of this backend, made once out of the checked system image.

use crate::arrival::{self, Held};
use crate::clock::Counter;
use crate::crash::halt;
use crate::entry::Registers;
use crate::irq::{Interrupts, MAX_LINES};
use crate::network::Uplink;
use crate::pool::Pool;
use crate::quick::Plain;
use crate::space::SpaceTable;
use crate::system::{self, CPUID, ID_PFR0, MPU_TYPE, MVFR0, NVIC_IPR, SYST_CALIB};
use crate::vcpu::ContextTable;
use crate::window::Loan;
use crate::{console, crash, fp, irq, log};
use bulkhead_arch_api::{
    Arch, ArchCaps, Exit, MAX_PARTITIONS, MAX_VCPUS_PER_PARTITION, Ticks, VcpuId, VcpuSet,
};
use bulkhead_arch_deprivileged::{MAX_MPU_REGIONS, Model};
use bulkhead_arch_support::Mmio;
use bulkhead_drivers::cmsdk::DualTimer;
use bulkhead_image::layout::{CLASS_ARMV7M, CONTROLLER_DUAL_TIMER, LookalikeRecord, NONE, ROLE_TIMER};
use bulkhead_image::{Image, ImageError, Portable, claimed_length};
use zerocopy::{FromBytes, IntoBytes};

unsafe extern "C" {
    static __image_end: u8;
    static __code_end: u8;
}

const _: () = assert!(size_of::<LookalikeRecord>() == size_of::<u32>() && cfg!(target_endian = "little"));

/// The machine.
pub struct Machine {
    /// Memory for the tables.
    pub(crate) pool: Pool,
    /// Contexts of vCPUs.
    pub(crate) contexts: ContextTable,
    /// Spaces of partitions.
    pub(crate) spaces: SpaceTable,
    /// Interrupt lines.
    pub(crate) irq: Interrupts,
    /// The board's network interface, if it is the hypervisor's.
    pub(crate) uplink: Option<Uplink>,
    /// vCPUs whose partitions' lines may interrupt.
    pub(crate) admitted: VcpuSet,
    /// The vCPU whose space, lines and configuration are in the hardware.
    pub(crate) current: Option<VcpuId>,
    /// Whether `current` runs, or the CPU waits.
    pub(crate) runs: bool,
    /// The vCPU whose floating-point registers are in the hardware.
    pub(crate) fp_owner: Option<VcpuId>,
    /// Why `current` stopped running.
    pub(crate) exit: Exit,
    /// First vCPU of each partition.
    pub(crate) first: [Option<VcpuId>; MAX_PARTITIONS],
    /// What a guest is told of its processor.
    pub(crate) model: &'static Model,
    /// Which partitions are held back so that the latency of their interrupts is constant.
    pub(crate) held: [Option<Held>; MAX_PARTITIONS],
    /// Regions of the memory protection unit.
    pub(crate) regions: u32,
    /// What the kernel wants to be told when.
    pub(crate) deadline: Ticks,
    /// Before then no guest's own timer interrupts.
    pub(crate) earliest_own: Ticks,
    /// What the timer will interrupt for.
    pub(crate) armed: Ticks,
    pub(crate) timer: DualTimer,
    pub(crate) timer_line: u32,
    pub(crate) counter: Counter,
    pub(crate) hertz: u32,
    /// Whether the image is for an emulator: only there a board switches itself off when a time is up.
    pub(crate) is_emulated: bool,
    /// Registers of the code that waits.
    pub(crate) idle: Registers,
    /// Address and records of the trace.
    pub(crate) trace: (usize, usize),
    /// Addresses of what looks like an instruction that the host tool replaced and is none, in ascending order.
    pub(crate) lookalikes: &'static [u32],
    /// What the shortest ways know of the current vCPU.
    pub(crate) plain: Plain,
    /// The kernel's device in its memory.
    pub(crate) loan: Loan,
}

/// How to wait inside a spin loop. There is one pCPU and nothing interrupts it, so nobody ever does.
#[derive(Debug)]
pub enum Relax {}

impl spin::RelaxStrategy for Relax {
    #[inline]
    fn relax() {}
}

impl Arch for Machine {
    type Relax = Relax;
    const CAPS: ArchCaps = ArchCaps {
        class: "armv7m",
        class_number: CLASS_ARMV7M,
        page_size: 32,
        guest_address_limit: 1 << 32,
        max_vcpus_per_partition: MAX_VCPUS_PER_PARTITION as u8,
        frozen_time: false,
        max_virtual_lines: MAX_LINES,
        masks_lines: true,
        semihosting: true,
    };
}

/// The system image behind the class binary, as long as its own header says; nothing else of it is checked.
fn system_image() -> &'static [u8] {
    let start = &raw const __image_end;
    let room = (&raw const __code_end).addr().saturating_sub(start.addr());
    // SAFETY: code memory up to `__code_end` is the hypervisor's (the linker script and the host tool see to it), nobody
    // writes it, and any bytes are bytes.
    let all = unsafe { core::slice::from_raw_parts(start, room) };
    let length = claimed_length(all).map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX));
    all.get(..length).unwrap_or(all)
}

/// Checks what stays in code memory: the guests' programs.
fn check_residents(image: Image<'static>) -> Result<(), ImageError> {
    for (index, record) in (0..).zip(image.residents()) {
        let start = record.address.get() as usize as *const u8;
        // SAFETY: the image is checked: the bytes are in code memory, which nobody writes once the board runs, and any bytes
        // are bytes.
        let bytes = unsafe { core::slice::from_raw_parts(start, record.size.get() as usize) };
        image.check_resident(index, bytes, &Portable)?;
    }
    Ok(())
}

/// The processor of all guests, once the board is known.
static MODEL: spin::Once<Model> = spin::Once::new();

/// Until then there are no guests.
static NO_MODEL: Model = Model {
    cpuid: 0,
    features: [0; 16],
    lines: 0,
    priority_bits: 0,
    systick_calibration: 0,
    systick_reference: 0,
    mpu_regions: 0,
    floating_point: false,
};

/// What this CPU tells software about itself, for guests to be told the same.
fn model(hertz: u32) -> Model {
    let mut features = [0; 16];
    for (index, feature) in features.iter_mut().enumerate() {
        // Thirteen words of identification, then those of the floating-point unit.
        *feature = match index.checked_sub(13) {
            None => system::read(ID_PFR0 + 4 * index),
            Some(index) => system::read(MVFR0 + 4 * index),
        };
    }
    // Priorities have as many bits as stick (B3.4.7).
    system::control_space().write8(NVIC_IPR, 0xFF);
    let priority_bits = system::control_space().read8(NVIC_IPR);
    system::control_space().write8(NVIC_IPR, 0);
    let systick_calibration = system::read(SYST_CALIB);
    Model {
        cpuid: system::read(CPUID),
        features,
        lines: irq::lines() as u8,
        priority_bits,
        systick_calibration,
        systick_reference: reference_cycles(systick_calibration, hertz),
        mpu_regions: MAX_MPU_REGIONS as u8,
        floating_point: fp::exists(),
    }
}

/// Cycles of the processor clock in one of SysTick's reference clock, by what the chip says of 10 ms (B3.3.6).
fn reference_cycles(calibration: u32, hertz: u32) -> u32 {
    const NO_REFERENCE: u32 = 1 << 31;
    let ten_milliseconds = (calibration & 0xFF_FFFF) + 1;
    if calibration & NO_REFERENCE != 0 || ten_milliseconds == 1 {
        return 0;
    }
    hertz / 100 / ten_milliseconds
}

impl Machine {
    fn new() -> Self {
        // SAFETY: a window without registers, until the image tells where the timer is.
        let nothing = unsafe { Mmio::new(0, 0) };
        let mut pool = Pool::take();
        Self {
            contexts: ContextTable::new(),
            spaces: SpaceTable::new(),
            irq: Interrupts::new(&mut pool),
            pool,
            uplink: None,
            admitted: VcpuSet(u64::MAX),
            current: None,
            runs: false,
            fp_owner: None,
            exit: Exit::Signal,
            first: [None; MAX_PARTITIONS],
            model: &NO_MODEL,
            held: [None; MAX_PARTITIONS],
            regions: system::read(MPU_TYPE) >> 8 & 0xFF,
            deadline: Ticks::NEVER,
            earliest_own: Ticks(0),
            armed: Ticks(0),
            timer: DualTimer::new(nothing),
            timer_line: u32::MAX,
            counter: Counter::new(nothing),
            hertz: 1,
            is_emulated: false,
            idle: crate::cpu::idle_registers(),
            trace: (0, 0),
            lookalikes: &[],
            plain: Plain::NOTHING,
            loan: Loan::NOTHING,
        }
    }

    /// The system image, or what is wrong with its tables. Called once, by `entry_point`, before anything else.
    #[inline(never)]
    pub fn image() -> Result<Image<'static>, ImageError> {
        let bytes = system_image();
        console::find(bytes);
        Image::check(bytes, CLASS_ARMV7M, &Portable)
    }

    /// The machine of this board. Called once, by `entry_point`.
    #[inline(never)]
    pub fn of(image: &Result<Image<'static>, ImageError>) -> Self {
        let mut machine = Self::new();
        if let Ok(image) = image {
            machine.adopt_board(image);
        }
        machine
    }

    /// What is wrong with the programs in code memory becomes what is wrong with the image.
    #[inline(never)]
    pub fn check_programs(image: &mut Result<Image<'static>, ImageError>) {
        if let Err(error) = image.and_then(check_residents) {
            *image = Err(error);
        }
    }

    fn adopt_board(&mut self, image: &Image<'static>) {
        crash::remember_devices(image.registers());
        if image.board().log_base.get() != log::address() {
            halt("LOCKDOWN: the log's place is not where this hypervisor has it");
        }
        let timer = image.controllers().iter().find(|record| {
            record.role.get() == ROLE_TIMER && record.compatible.get() == CONTROLLER_DUAL_TIMER
        });
        let Some(timer) = timer else {
            halt("LOCKDOWN: no timer this hypervisor can use in the board's tables");
        };
        let window = |index: usize| {
            let place = timer.base.get(index).zip(timer.size.get(index));
            let (base, size) =
                place.map_or((0, 0), |(base, size)| (base.get() as usize, size.get() as usize));
            // SAFETY: the image is checked: these are the registers of the timer, and nobody else has them.
            unsafe { Mmio::new(base, size) }
        };
        let [line, ..] = timer.lines;
        self.timer = DualTimer::new(window(0));
        self.counter = Counter::new(window(1));
        arrival::find(self.counter.address());
        self.timer_line = line.get();
        self.hertz = timer.clock_hz.get().max(1);
        self.model = MODEL.call_once(|| model(self.hertz));
        irq::set_priorities(line.get());
        self.irq.own(line.get());
        let Ok(lookalikes) = <[u32]>::ref_from_bytes(image.lookalikes().as_bytes()) else {
            halt("LOCKDOWN: the table of what looks like a replaced instruction is not where words can be");
        };
        self.lookalikes = lookalikes;
        self.uplink = Uplink::of(image);
        let board = image.board();
        self.is_emulated = board.stop_after_ms.get() != NONE;
        self.trace = (
            board.trace_base.get() as usize,
            board.trace_records.get() as usize,
        );
        crate::space::close();
    }
}
