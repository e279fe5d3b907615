// SPDX-License-Identifier: Apache-2.0
//! The checks on a board: the one main program of the class binaries that have the checks in the kernel's
//! place.
//!
//! A class binary has an entry point, a panic handler and a [`Class`], which says only the facts that the
//! class has for itself. Everything else is here.

use crate::guest::{Guest, controller};
use crate::program::{Dialect, write_program};
use crate::{At, Bench, Need, RECORDS, Role, Space, Step, report};
use bulkhead_arch_api::class::{Endianness, Word};
use bulkhead_arch_api::{Arch, Console, Cpus, GuestPhys, VcpuReset, VirtualDevice, VirtualLine};
use bulkhead_image::{Image, ImageError};
use core::marker::PhantomData;

/// The facts of a class that only the checks need.
pub trait Class {
    /// The backend.
    type Machine: Arch;
    /// The board's serial line.
    type Serial: Console;
    /// A line of the virtual interrupt controller.
    const LINE: VirtualLine;
    /// The numbers of the virtual interrupt controllers, if they have windows in the space.
    const CONTROLLERS: &'static [u32] = &[];
    /// Bits of a general register of the VMs of the checks.
    const REGISTER_BITS: u32 = match <Self::Machine as Arch>::CAPS.word {
        Word::Bits32 => 32,
        Word::Bits64 => 64,
    };
    /// Returns the meaning of the steps that need several registers of the class. `controller` has the
    /// windows of the virtual interrupt controller, if they are in the space.
    fn dialect(controller: Option<&[VirtualDevice; 2]>) -> Dialect;
    /// Returns the reason why the class does not have that, if it does not.
    fn lacks(_need: Need) -> Option<&'static str> {
        None
    }
    /// Changes the state in which the role's vCPU starts, if the class needs another one.
    fn adjust(_role: Role, _reset: &mut VcpuReset) {}
}

/// A board with a guest, as the checks see it.
struct Board<C: Class> {
    machine: C::Machine,
    serial: C::Serial,
    guest: Guest,
    /// The windows of the guest's interrupt controller, and the lines of that.
    controller: Option<([VirtualDevice; 2], u32)>,
    dialect: Dialect,
    class: PhantomData<C>,
}

impl<C: Class> Bench for Board<C> {
    type Machine = C::Machine;

    fn machine(&mut self) -> &mut C::Machine {
        &mut self.machine
    }

    fn console(&mut self) -> &mut impl Console {
        &mut self.serial
    }

    fn space(&self, role: Role) -> Space {
        self.guest.space(role)
    }

    fn nowhere(&self) -> GuestPhys {
        self.guest.nowhere()
    }

    fn controller(&self) -> Option<([VirtualDevice; 2], u32)> {
        self.controller
    }

    fn line(&self) -> VirtualLine {
        C::LINE
    }

    fn register_bits(&self) -> u32 {
        C::REGISTER_BITS
    }

    fn is_big_endian(&self) -> bool {
        <C::Machine as Arch>::CAPS.endianness == Endianness::Big
    }

    fn lacks(&self, need: Need) -> Option<&'static str> {
        C::lacks(need)
    }

    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset {
        let (guest, dialect) = (self.guest, self.dialect);
        let records = self.address(role, At::Ram(RECORDS));
        let mut reset = guest.start(self, role, records);
        // Without its records the guest finds older ones, which the check then sees.
        let _is_seen = write_program(self, role, steps, &dialect);
        C::adjust(role, &mut reset);
        reset
    }
}

/// Runs the checks on the guest of this system image, and switches the board off. Stops at once if the guest
/// is not there.
pub fn start<C: Class>(
    mut machine: C::Machine,
    serial: C::Serial,
    image: Result<Image<'static>, ImageError>,
) -> ! {
    let image = image.ok();
    let guest = image
        .as_ref()
        .and_then(|image| Guest::find(image, &<C::Machine as Arch>::CAPS));
    let controller = image.as_ref().and_then(|image| controller(image, C::CONTROLLERS));
    let is_complete = controller.is_some() || C::CONTROLLERS.is_empty();
    let Some(guest) = guest.filter(|_| is_complete) else {
        machine.stop()
    };
    let dialect = C::dialect(controller.as_ref().map(|(windows, _)| windows));
    report::run(Board::<C> {
        machine,
        serial,
        guest,
        controller,
        dialect,
        class: PhantomData,
    })
}
