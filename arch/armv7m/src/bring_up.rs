// SPDX-License-Identifier: Apache-2.0
//! Bring-up: the machine is made once, out of the checked system image.

use crate::context::{Context, ContextTable, Registers};
use crate::crash::{self, halt};
use crate::lines::{self, BYTES_OF_LINE, Interrupts};
use crate::machine::Machine;
use crate::protection::{self, Plain, Space, SpaceTable};
use crate::sysreg::{self, CPUID, ID_PFR0, MPU_TYPE, MVFR0, NVIC_IPR, PID4, SYST_CALIB};
use crate::window::Loan;
use crate::{arrival, fp, log};
use bulkhead_abi::lockdown;
use bulkhead_arch_api::class::DriverFacts;
use bulkhead_arch_api::{Exit, Line, MAX_PARTITIONS, Ticks, VcpuSet, class};
use bulkhead_arch_armv7m_core::{MAX_MPU_REGIONS, Model};
use bulkhead_arch_one_pcpu::Counter;
use bulkhead_arch_one_pcpu::Pool;
use bulkhead_arch_one_pcpu::cmsdk as console;
use bulkhead_arch_one_pcpu::flash::{check_residents, system_image};
use bulkhead_arch_support::{Mmio, SetOnce};
use bulkhead_drivers::cmsdk::DualTimer;
use bulkhead_image::layout::{CONTROLLER_DUAL_TIMER, LookalikeRecord, NONE, ROLE_TIMER};
use bulkhead_image::{Image, ImageError, Portable};
use core::arch::global_asm;
use zerocopy::{FromBytes, IntoBytes};

// The bytes of the pool that a partition and an interrupt line take, for the linker script and for
// measurements.
global_asm!(
    ".global __pool_partition",
    ".set __pool_partition, {partition}",
    ".global __pool_line",
    ".set __pool_line, {line}",
    partition = const size_of::<Context>() + size_of::<Space>(),
    line = const BYTES_OF_LINE,
);

const _: () = assert!(size_of::<LookalikeRecord>() == size_of::<u32>() && cfg!(target_endian = "little"));

/// The processor of all guests, once the board is known.
static MODEL: SetOnce<Model> = SetOnce::new();

/// The processor until the board is known. Until then there are no guests.
static NO_MODEL: Model = Model {
    cpuid: 0,
    features: [0; 16],
    identification: [0; 12],
    lines: 0,
    priority_bits: 0,
    systick_calibration: 0,
    systick_reference: 0,
    mpu_regions: 0,
    floating_point: false,
};

/// Returns the description that this CPU gives software of itself. Guests get the same description.
fn model(hertz: u32) -> Model {
    let mut features = [0; 16];
    for (index, feature) in features.iter_mut().enumerate() {
        // Thirteen words of identification, then words of the floating-point unit.
        *feature = match index.checked_sub(13) {
            None => sysreg::read(ID_PFR0 + 4 * index),
            Some(index) => sysreg::read(MVFR0 + 4 * index),
        };
    }
    // The number of bits of a priority is the number of ones that stay written (B3.4.7).
    sysreg::control_space().write8(NVIC_IPR, 0xFF);
    let priority_bits = sysreg::control_space().read8(NVIC_IPR);
    sysreg::control_space().write8(NVIC_IPR, 0);
    let systick_calibration = sysreg::read(SYST_CALIB);
    Model {
        cpuid: sysreg::read(CPUID),
        features,
        identification: core::array::from_fn(|index| sysreg::read(PID4 + 4 * index) as u8),
        lines: lines::lines() as u8,
        priority_bits,
        systick_calibration,
        systick_reference: reference_cycles(systick_calibration, hertz),
        mpu_regions: MAX_MPU_REGIONS as u8,
        floating_point: fp::exists(),
    }
}

/// Returns the cycles of the processor clock in one cycle of SysTick's reference clock, by the chip's value
/// for 10 ms (B3.3.6).
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
        // SAFETY: a window without registers, until the image tells the address of the timer.
        let nothing = unsafe { Mmio::new(0, 0) };
        let mut pool = Pool::take();
        Self {
            contexts: ContextTable::new(),
            spaces: SpaceTable::new(),
            irq: Interrupts::new(&mut pool, log::area()),
            pool,
            admitted: VcpuSet(u64::MAX),
            current: None,
            runs: false,
            fp_owner: None,
            exit: Exit::Signal,
            first: [None; MAX_PARTITIONS],
            model: &NO_MODEL,
            held: [None; MAX_PARTITIONS],
            early: None,
            early_untold: None,
            regions: sysreg::read(MPU_TYPE) >> 8 & 0xFF,
            deadline: Ticks::NEVER,
            earliest_own: Ticks(0),
            armed: Ticks(0),
            timer: DualTimer::new(nothing),
            timer_line: u32::MAX,
            counter: Counter::new(nothing),
            hertz: 0,
            is_emulated: false,
            idle: Registers::NOTHING,
            trace: (0, 0),
            lookalikes: &[],
            plain: Plain::NOTHING,
            loan: Loan::NOTHING,
        }
    }

    /// Returns the system image, or the error in its tables. Called once, by `entry_point`, before anything
    /// else.
    #[inline(never)]
    pub fn image() -> Result<Image<'static>, ImageError> {
        let bytes = system_image();
        console::find(bytes);
        bulkhead_arch_trust::check(bytes, &class::ARMV7M, &Portable)
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

    /// Returns registers and line of the device that this driver has on the board of a checked image.
    #[must_use]
    pub fn device(image: &Image<'_>, driver: &DriverFacts) -> Option<(Mmio, Line)> {
        let record = image.controllers().iter().find(|record| {
            record.role.get() == driver.role.number() && record.compatible.get() == driver.number
        })?;
        let ([base, ..], [size, ..], [line, ..]) = (record.base, record.size, record.lines);
        // SAFETY: the image is checked: these are the registers of the device, and no other code has them.
        let registers = unsafe { Mmio::new(base.get() as usize, size.get() as usize) };
        Some((registers, Line(line.get())))
    }

    fn adopt_board(&mut self, image: &Image<'static>) {
        crash::remember_devices(image.registers());
        if image.board().log_base.get() != log::address() {
            halt(lockdown!("the log's place is not where this hypervisor has it"));
        }
        let timer = image.controllers().iter().find(|record| {
            record.role.get() == ROLE_TIMER && record.compatible.get() == CONTROLLER_DUAL_TIMER
        });
        let Some(timer) = timer else {
            halt(lockdown!(
                "no timer this hypervisor can use in the board's tables"
            ));
        };
        let window = |index: usize| {
            let place = timer.base.get(index).zip(timer.size.get(index));
            let (base, size) =
                place.map_or((0, 0), |(base, size)| (base.get() as usize, size.get() as usize));
            // SAFETY: the image is checked: these are the registers of the timer, and no other code has them.
            unsafe { Mmio::new(base, size) }
        };
        let [line, ..] = timer.lines;
        self.timer = DualTimer::new(window(0));
        self.counter = Counter::new(window(1));
        arrival::find(self.counter.address());
        self.timer_line = line.get();
        self.hertz = timer.clock_hz.get().max(1);
        self.model = MODEL.set(model(self.hertz)).unwrap_or(&NO_MODEL);
        lines::set_priorities(line.get());
        self.irq.own(line.get());
        let Ok(lookalikes) = <[u32]>::ref_from_bytes(image.lookalikes().as_bytes()) else {
            halt(lockdown!(
                "the table of what looks like a replaced instruction is not where words can be"
            ));
        };
        self.lookalikes = lookalikes;
        let board = image.board();
        self.is_emulated = board.stop_after_ms.get() != NONE;
        self.trace = (
            board.trace_base.get() as usize,
            board.trace_records.get() as usize,
        );
        protection::close();
    }
}
