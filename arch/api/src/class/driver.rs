// SPDX-License-Identifier: Apache-2.0
//! The board's own devices that the hypervisor drives. A class lists the drivers of its binary in
//! [`super::ClassFacts::drivers`].

pub use super::role::Role;

/// The facts of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverFacts {
    /// Number of the driver in a system image. A number is never used again for another driver.
    pub number: u32,
    /// The part that its device plays.
    pub role: Role,
    /// The least size of each register window that it needs, in bytes.
    pub windows: &'static [u64],
    /// The registers are I/O ports, not memory.
    pub uses_ports: bool,
    /// It guards memory of the board. It has a window of registers, and that memory as its second window. A
    /// board can have several of them.
    pub guards: bool,
}

/// The page that a window of memory starts at, and a multiple of which it is long.
const PAGE: u64 = 0x1000;

const fn driver(number: u32, role: Role, windows: &'static [u64]) -> DriverFacts {
    DriverFacts {
        number,
        role,
        windows,
        uses_ports: false,
        guards: false,
    }
}

const fn at_ports(number: u32, role: Role, windows: &'static [u64]) -> DriverFacts {
    DriverFacts {
        uses_ports: true,
        ..driver(number, role, windows)
    }
}

/// Arm PrimeCell PL011 UART.
pub const PL011: DriverFacts = driver(1, Role::Console, &[PAGE]);
/// Arm GICv3: windows distributor, redistributors (Arm IHI 0069, sections 12.8 and 12.10).
pub const GIC_V3: DriverFacts = driver(2, Role::Interrupts, &[0x1_0000, 0x2_0000]);
/// Arm generic timer.
pub const ARM_TIMER: DriverFacts = driver(3, Role::Timer, &[]);
/// Arm GICv2 with virtualization extensions: windows distributor, CPU interface, virtual interface control,
/// virtual CPU interface.
pub const GIC_V2: DriverFacts = driver(4, Role::Interrupts, &[PAGE, 2 * PAGE, PAGE, 2 * PAGE]);
/// Cadence UART.
pub const CADENCE_UART: DriverFacts = driver(5, Role::Console, &[PAGE]);
/// CMSDK APB UART: lines for receive and for transmit.
pub const CMSDK_UART: DriverFacts = driver(6, Role::Console, &[PAGE]);
/// The interrupt controller of an M-profile CPU, at its architected place.
pub const NVIC: DriverFacts = driver(7, Role::Interrupts, &[]);
/// Dual timer (SP804), with a window of its registers and one with the registers of the free-running counter
/// of an MPS2 board.
pub const DUAL_TIMER: DriverFacts = driver(8, Role::Timer, &[PAGE, PAGE]);
/// SMSC LAN9118 Ethernet controller.
pub const LAN9118: DriverFacts = driver(9, Role::Network, &[PAGE]);
/// The secure privilege control block of an IoT Kit: a window with the registers of the peripheral protection
/// controllers (Arm ECM0601256, section 4.4.2).
pub const IOTKIT_SECURITY: DriverFacts = driver(10, Role::Security, &[PAGE]);
/// A memory protection controller: windows registers, memory that it guards (Arm DDI 0571G, section 3.10).
pub const ARM_MPC: DriverFacts = DriverFacts {
    guards: true,
    ..driver(11, Role::Security, &[PAGE, PAGE])
};
/// The parts of an SSE-200 by which one CPU starts and interrupts the other: windows system control (Arm
/// 101104, section 3.6.2), message handling unit (section 3.5).
pub const SSE200: DriverFacts = driver(12, Role::Processors, &[PAGE, PAGE]);

/// UART 0 of a PPC405EP, an NS 16550A. Its window is the page that it shares with other peripherals.
pub const PPC405EP_UART: DriverFacts = driver(30, Role::Console, &[PAGE]);
/// The place of that UART in its page.
pub const PPC405EP_UART_OFFSET: u64 = 0x300;
/// Universal interrupt controller of a PowerPC 4xx, at its architected device control registers.
pub const UIC: DriverFacts = driver(31, Role::Interrupts, &[]);
/// Time base and programmable interval timer of a PowerPC 4xx.
pub const PPC_TIMER: DriverFacts = driver(32, Role::Timer, &[]);
/// NS 16550A UART at I/O ports.
pub const NS16550: DriverFacts = at_ports(20, Role::Console, &[8]);
/// The APICs of a PC: windows local APIC, I/O APIC.
pub const APIC: DriverFacts = driver(21, Role::Interrupts, &[PAGE, PAGE]);
/// The power management timer of ACPI, by which the other clocks are measured: a window of I/O ports.
pub const ACPI_TIMER: DriverFacts = at_ports(22, Role::Timer, &[4]);
