// SPDX-License-Identifier: Apache-2.0
//! Bring-up: the machine is made once, out of the checked system image.

use crate::attribution::Attribution;
use crate::context::{Context, ContextTable, Registers};
use crate::crash::{self, halt};
use crate::line_set::insert;
use crate::lines::{BYTES_OF_LINE, Interrupts};
use crate::machine::Machine;
use crate::pair::{PLACES, Pair, STACK_BYTES};
use crate::protection::{self, Space, SpaceTable};
use crate::sysreg::{self, AIRCR, ICSR, MAX_LINES, MPU_TYPE, SAU_TYPE, SCR, SHPR1, SHPR3, SYST_CSR};
use crate::{fp, loan, log};
use bulkhead_abi::lockdown;
use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_arch_api::{Exit, MAX_PARTITIONS, MAX_PCPUS, Ticks, VcpuSet, class};
use bulkhead_arch_one_pcpu::cmsdk as console;
use bulkhead_arch_one_pcpu::flash::{check_residents, system_image};
use bulkhead_arch_one_pcpu::{Counter, Pool};
use bulkhead_arch_support::Mmio;
use bulkhead_drivers::cmsdk::DualTimer;
use bulkhead_image::layout::{
    CONTROLLER_ARM_MPC, CONTROLLER_DUAL_TIMER, CONTROLLER_IOTKIT_SECURITY, CONTROLLER_NVIC, ControllerRecord,
    NONE, PARTITION_VM, ROLE_TIMER,
};
use bulkhead_image::{Image, ImageError, Portable};
use core::arch::global_asm;

// The bytes of the pool that a partition and an interrupt line take, and the number of these, for the linker
// script and for measurements.
global_asm!(
    ".global __pool_partition",
    ".set __pool_partition, {partition}",
    ".global __pool_line",
    ".set __pool_line, {line}",
    ".global __pool_partitions",
    ".set __pool_partitions, {partitions}",
    ".global __pool_pcpus",
    ".set __pool_pcpus, {pcpus}",
    ".global __second_stack",
    ".set __second_stack, {second_stack}",
    partition = const size_of::<Context>() + size_of::<Space>(),
    line = const BYTES_OF_LINE,
    partitions = const MAX_PARTITIONS,
    pcpus = const MAX_PCPUS,
    second_stack = const PLACES * STACK_BYTES,
);

/// AIRCR (D1.2.2): priorities of the Non-secure world are below all Secure ones (PRIS), and only Secure
/// software resets the board (SYSRESETREQS).
pub(crate) const CONTROL: u32 = 1 << 14 | 1 << 3;
const KEY: u32 = 0x05FA << 16;
/// ICSR.PENDSTCLR (D1.2.146).
const PENDSTCLR: u32 = 1 << 25;
/// SCR (D1.2.231): only Secure software decides about deep sleep (SLEEPDEEPS), and the hypervisor asks for
/// none.
const SECURE_SLEEP: u32 = 1 << 3;

/// Returns a window of a device.
pub(crate) fn window(record: &ControllerRecord, index: usize) -> Mmio {
    let place = record.base.get(index).zip(record.size.get(index));
    let (base, size) = place.map_or((0, 0), |(base, size)| (base.get() as usize, size.get() as usize));
    // SAFETY: the image is checked: these are the registers of the device, and no other code has them.
    unsafe { Mmio::new(base, size) }
}

impl Machine {
    pub(crate) fn new() -> Self {
        // SAFETY: a window without registers, until the image tells the address of the timer.
        let nothing = unsafe { Mmio::new(0, 0) };
        let mut pool = Pool::take();
        Self {
            contexts: ContextTable::new(),
            spaces: SpaceTable::new(),
            attribution: Attribution::new(),
            irq: Interrupts::new(&mut pool),
            pool,
            admitted: VcpuSet(u64::MAX),
            current: None,
            runs: false,
            tenant: None,
            parked: true,
            lines_are_out: false,
            is_closed: false,
            passes: false,
            loaded: 0,
            exit: Exit::Signal,
            first: [None; MAX_PARTITIONS],
            deadline: Ticks::NEVER,
            armed: Ticks(0),
            timer: DualTimer::new(nothing),
            timer_line: u32::MAX,
            counter: Counter::new(nothing),
            hertz: 0,
            is_emulated: false,
            idle: Registers::NOTHING,
            trace: (0, 0),
            loan: [const { None }; loan::PLACES],
            pair: [Pair::new(nothing, nothing, u32::MAX); PLACES],
        }
    }

    /// Returns the system image, or the error in its tables. Called once, by `entry_point`, before anything
    /// else.
    #[inline(never)]
    pub fn image() -> Result<Image<'static>, ImageError> {
        let bytes = system_image();
        console::find(bytes);
        bulkhead_arch_trust::check(bytes, &class::ARMV8M, &Portable)
    }

    /// Returns the machine of this board. Called once, by `entry_point`.
    #[inline(never)]
    pub fn of(image: &Result<Image<'static>, ImageError>) -> Self {
        let mut machine = Self::new();
        if let Ok(image) = image {
            machine.adopt_board(image);
        }
        machine
    }

    /// Turns an error in the programs in code memory into an error of the image.
    #[inline(never)]
    pub fn check_programs(image: &mut Result<Image<'static>, ImageError>) {
        if let Err(error) = image.and_then(check_residents) {
            *image = Err(error);
        }
    }

    fn adopt_board(&mut self, image: &Image<'static>) {
        if image.board().log_base.get() != log::address() {
            halt(lockdown!("the log's place is not where this hypervisor has it"));
        }
        let of_kind = |kind| {
            image
                .controllers()
                .iter()
                .filter(move |record| record.compatible.get() == kind)
        };
        let Some(timer) = of_kind(CONTROLLER_DUAL_TIMER).find(|record| record.role.get() == ROLE_TIMER)
        else {
            halt(lockdown!(
                "no timer this hypervisor can use in the board's tables"
            ));
        };
        let [line, ..] = timer.lines;
        self.timer = DualTimer::new(window(timer, 0));
        self.counter = Counter::new(window(timer, 1));
        self.timer_line = line.get();
        self.hertz = timer.clock_hz.get().max(1);
        if let Some(controller) = of_kind(CONTROLLER_NVIC).next() {
            let [first, last, ..] = controller.lines;
            for line in (first.get()..=last.get()).take(MAX_LINES as usize) {
                insert(&mut self.irq.shared, line);
            }
        }
        self.irq.own(line.get());
        let Some(security) = of_kind(CONTROLLER_IOTKIT_SECURITY).next() else {
            halt(lockdown!(
                "no security controller this hypervisor can use in the board's tables"
            ));
        };
        for record in of_kind(CONTROLLER_ARM_MPC) {
            let ([_, memory, ..], [_, size, ..]) = (record.base, record.size);
            let (first, bytes) = (memory.get() as u32, size.get() as u32);
            let memory = first..=first.wrapping_add(bytes.wrapping_sub(1));
            if !self.attribution.add(window(record, 0), memory) {
                halt(lockdown!(
                    "the board has more memory protection controllers than this hypervisor"
                ));
            }
        }
        let vms = (0_u32..)
            .zip(image.partitions())
            .filter(|(_, record)| record.kind.get() == PARTITION_VM)
            .fold(0, |vms, (number, _)| vms | 1_u32.wrapping_shl(number));
        // A line of a task's device interrupts the hypervisor, which tells the task.
        let is_of_task = |partition: u32| vms & 1_u32.wrapping_shl(partition) == 0;
        let interrupts = image.interrupts().iter();
        for record in interrupts.filter(|record| is_of_task(record.partition.get())) {
            self.irq.reserve(record.line.get());
        }
        if PARTS.has(Part::Lent) {
            for line in image
                .sides()
                .iter()
                .filter_map(|side| side.line.get().checked_sub(1))
            {
                self.irq.reserve(line);
            }
        }
        self.attribution
            .give_devices(image.registers(), vms, window(security, 0));
        crash::remember_devices(image.registers(), window(security, 0));
        self.adopt_pair(image);
        let board = image.board();
        self.is_emulated = board.stop_after_ms.get() != NONE;
        self.trace = (
            board.trace_base.get() as usize,
            board.trace_records.get() as usize,
        );
        self.start_cpu();
        self.attribution.start();
    }

    /// Sets the registers of this CPU that stay as they are.
    pub(crate) fn start_cpu(&self) {
        let regions = |space: Mmio, kind| space.read32(kind) >> 8 & 0xFF;
        let units = [sysreg::control_space(), sysreg::other_space()];
        let has_units = units.into_iter().all(|space| regions(space, MPU_TYPE) >= 16);
        if sysreg::read(SAU_TYPE) & 0xFF < 8 || !has_units {
            halt(lockdown!(
                "the processor has fewer than 8 regions of the SAU, or than 16 of a protection unit"
            ));
        }
        // A boot loader may have used the Secure SysTick, and priorities of exceptions.
        for priorities in (SHPR1..=SHPR3).step_by(4) {
            sysreg::write(priorities, 0);
        }
        sysreg::write(SYST_CSR, 0);
        sysreg::write(ICSR, PENDSTCLR);
        sysreg::write(AIRCR, KEY | CONTROL);
        sysreg::write(SCR, SECURE_SLEEP);
        sysreg::set_primask(1);
        protection::start();
        // Its barriers are for all of these writes.
        fp::open();
    }
}
