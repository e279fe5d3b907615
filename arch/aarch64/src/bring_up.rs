// SPDX-License-Identifier: Apache-2.0
//! From the checked system image to the machine of each pCPU.
//!
//! [`Machine::primary`] checks the tables of the system image (not the payloads), once for backend and
//! kernel. Only then does it trust an address in them. If the tables are bad the machine is made with the
//! console alone, so that the kernel can report why.

use crate::board::{BOARD, Board};
use crate::crash::halt;
use crate::gic::{self, GicConfig};
use crate::machine::Machine;
use crate::state::{Auxiliary, NO_WALKS_AARCH32};
use crate::sysreg::{read_register, write_guest_register};
use crate::{boot, console, debug, digest::CpuDigest, mmu, predictions, short_trace, space, state, timer};
use bulkhead_abi::lockdown;
use bulkhead_arch_api::{HostPhys, MAX_PCPUS, PcpuId, class};
use bulkhead_arch_paging::MapError;
use bulkhead_arch_translating::layout::{misplaced, system_image};
use bulkhead_image::layout::{
    CONTROLLER_GIC_V2, CONTROLLER_GIC_V3, ControllerRecord, MAP_DEVICE, ROLE_INTERRUPTS, ROLE_TIMER,
};
use bulkhead_image::{Image, ImageError};

/// The interrupt controller for which this is built.
const CONTROLLER_GIC: u32 = if cfg!(feature = "gic-v2") {
    CONTROLLER_GIC_V2
} else {
    CONTROLLER_GIC_V3
};

impl Machine {
    /// Returns the boot pCPU's machine, and the system image or its error. Called once, by `entry_points`.
    pub fn primary() -> (Self, Result<Image<'static>, ImageError>) {
        let bytes = system_image();
        console::find(bytes);
        match bulkhead_arch_trust::check(bytes, &class::AARCH64, &CpuDigest) {
            Ok(image) => (Self::on_board(&image), Ok(image)),
            Err(error) => (Self::new(PcpuId(0)), Err(error)),
        }
    }

    fn on_board(image: &Image<'_>) -> Self {
        if let Some(reason) = misplaced(image.board()) {
            halt(reason);
        }
        if read_register!("cntfrq_el0") == 0 {
            halt(lockdown!("the firmware has not set CNTFRQ_EL0"));
        }
        let board = BOARD.set(survey(image));
        let Some(board) = board.filter(|_| map_board(image).is_ok()) else {
            halt(lockdown!("the board's map does not fit the tables or the CPU"));
        };
        let mut machine = Self::new(boot_pcpu(board));
        init_interrupts(image);
        machine.init();
        machine
    }

    /// Returns the machine of a pCPU that [`bulkhead_arch_api::Cpus::start`] started. Called once per pCPU,
    /// by `entry_points`.
    #[must_use]
    pub fn secondary(index: u64) -> Self {
        let mut machine = Self::new(PcpuId(index as u8));
        machine.init();
        machine
    }

    /// Sets the registers of EL2 that stay as they are, and the pCPU's part of the interrupt controller.
    fn init(&mut self) {
        timer::real_time();
        self.predictions = predictions::of_this_cpu();
        state::shut_translation(0, NO_WALKS_AARCH32);
        self.auxiliary = Auxiliary::exist();
        debug::init();
        write_guest_register!("vpidr_el2", read_register!("midr_el1"));
        write_guest_register!("hstr_el2", 0);
        no_fine_controls();
        space::enable();
        if !gic::init_pcpu(&mut self.irq, self.pcpu, boot::own_hardware_id()) {
            halt(lockdown!(
                "no GIC redistributor for this pCPU, or one that does not take changes"
            ));
        }
        short_trace::init(self);
    }
}

/// Clears the controls of later architectures, which are unknown after a reset. The firmware may have left
/// anything there. No fine-grained trap is on, and none of the features of which guests are not told
/// (FEAT_FGT, FEAT_FGT2, FEAT_HCX, FEAT_MPAM; Arm DDI 0487 D19.2). The registers are named by their
/// encodings, because assemblers know the names only with the extension.
fn no_fine_controls() {
    let fine = read_register!("id_aa64mmfr0_el1") >> 56 & 0xF;
    if fine >= 1 {
        // HFGRTR_EL2, HFGWTR_EL2, HFGITR_EL2, HDFGRTR_EL2, HDFGWTR_EL2.
        write_guest_register!("s3_4_c1_c1_4", 0);
        write_guest_register!("s3_4_c1_c1_5", 0);
        write_guest_register!("s3_4_c1_c1_6", 0);
        write_guest_register!("s3_4_c3_c1_4", 0);
        write_guest_register!("s3_4_c3_c1_5", 0);
    }
    if fine >= 2 {
        // HDFGRTR2_EL2, HDFGWTR2_EL2, HFGRTR2_EL2, HFGWTR2_EL2, HFGITR2_EL2.
        write_guest_register!("s3_4_c3_c1_0", 0);
        write_guest_register!("s3_4_c3_c1_1", 0);
        write_guest_register!("s3_4_c3_c1_2", 0);
        write_guest_register!("s3_4_c3_c1_3", 0);
        write_guest_register!("s3_4_c3_c1_7", 0);
    }
    if read_register!("id_aa64mmfr1_el1") >> 40 & 0xF != 0 {
        // HCRX_EL2.
        write_guest_register!("s3_4_c1_c2_2", 0);
    }
    let partitioning = read_register!("id_aa64pfr0_el1") >> 40 | read_register!("id_aa64pfr1_el1") >> 16;
    if partitioning & 0xF != 0 {
        // MPAM2_EL2: TRAPMPAM0EL1 and TRAPMPAM1EL1, so that no guest picks whose share of a cache it uses
        // (DDI 0598). MPAM1_EL1 and MPAM0_EL1 are the share that all guests use.
        write_guest_register!("s3_4_c10_c5_0", 3 << 48);
        write_guest_register!("s3_0_c10_c5_0", 0);
        write_guest_register!("s3_0_c10_c5_1", 0);
        // MPAMIDR_EL1.HAS_HCR: MPAMHCR_EL2.TRAP_MPAMIDR_EL1, and no virtual partition.
        if read_register!("s3_0_c10_c4_4") & 1 << 17 != 0 {
            write_guest_register!("s3_4_c10_c4_0", 1 << 31);
        }
    }
}

fn survey(image: &Image<'_>) -> Board {
    let mut hardware_ids = [u64::MAX; MAX_PCPUS];
    for (slot, record) in hardware_ids.iter_mut().zip(image.pcpus()) {
        *slot = record.hardware_id.get();
    }
    let board = image.board();
    Board {
        hardware_ids,
        pool: (board.pool_base.get(), board.pool_size.get()),
        trace: (board.trace_base.get(), board.trace_records.get() as usize),
        traces_short_exits: board.trace_short_exits.get() != 0,
    }
}

/// Returns the number of the pCPU this runs on.
fn boot_pcpu(board: &Board) -> PcpuId {
    let own = boot::own_hardware_id();
    match board.hardware_ids.iter().position(|id| *id == own) {
        Some(0) => PcpuId(0),
        _ => halt(lockdown!("the boot CPU is not pCPU 0 of the board")),
    }
}

fn map_board(image: &Image<'_>) -> Result<(), MapError> {
    mmu::map_board(image)?;
    for record in image.controllers() {
        for (base, size) in record.base.iter().zip(&record.size) {
            if size.get() != 0 && !is_device(image, base.get(), size.get()) {
                mmu::map_device(HostPhys(base.get()), size.get())?;
            }
        }
    }
    Ok(())
}

/// Tells whether one device of the address map covers these registers.
fn is_device(image: &Image<'_>, base: u64, size: u64) -> bool {
    image.map().iter().any(|record| {
        let start = record.base.get();
        record.kind.get() == MAP_DEVICE
            && start <= base
            && base.saturating_add(size) <= start.saturating_add(record.size.get())
    })
}

fn controller<'i>(image: &Image<'i>, role: u32) -> Option<&'i ControllerRecord> {
    image
        .controllers()
        .iter()
        .find(|record| record.role.get() == role)
}

/// Brings up the distributor with the lines the image names.
fn init_interrupts(image: &Image<'_>) {
    let gic = controller(image, ROLE_INTERRUPTS).filter(|record| record.compatible.get() == CONTROLLER_GIC);
    let (Some(gic), Some(timer)) = (gic, controller(image, ROLE_TIMER)) else {
        halt(lockdown!(
            "no timer, or not the GIC this hypervisor is for, in the board's tables"
        ));
    };
    let mut windows = [(0, 0); 4];
    for ((window, base), size) in windows.iter_mut().zip(&gic.base).zip(&gic.size) {
        *window = (base.get() as usize, size.get() as usize);
    }
    let [maintenance, ..] = gic.lines;
    let [hypervisor_timer, virtual_timer, physical_timer, _] = timer.lines;
    let config = GicConfig {
        windows,
        maintenance: maintenance.get(),
        hypervisor_timer: hypervisor_timer.get(),
        virtual_timer: virtual_timer.get(),
        physical_timer: physical_timer.get(),
    };
    // SAFETY: the image is checked and `map_board` has mapped the controllers' windows as device memory.
    if !unsafe { gic::init_distributor(&config) } {
        halt(lockdown!("the GIC's distributor does not take changes"));
    }
}
