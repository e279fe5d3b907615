// SPDX-License-Identifier: Apache-2.0
//! The virtual devices that VMs can have. A class lists the devices of its VMs in
//! [`super::ClassFacts::devices`].
//!
//! The kernel knows the part that a device plays, never which device plays it.

use crate::AddressSpace;

/// The UART that a VM's console looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtualUart {
    /// Arm PrimeCell PL011.
    Pl011,
    /// UART of the Cortex-M System Design Kit.
    Cmsdk,
    /// NS 16550A.
    Ns16550,
}

/// The part that a virtual device plays for the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceRole {
    /// The interrupt controller of a VM. The backend answers it.
    Controller,
    /// The console of a VM.
    Console(VirtualUart),
    /// The interface of a VM to a network.
    Network,
    /// The interrupt of the partition's event gate. It has no registers.
    Gate,
    /// Banks of parallel flash. Each window is memory of the VM as well, which only the hypervisor changes.
    Flash,
    /// A PCI host bridge, under which the VM finds channels.
    Bridge,
}

/// The registers of a device in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowFacts {
    /// The fewest bytes or registers; 0 if the device has no such window.
    pub size: u64,
    /// The address space that it is in.
    pub space: AddressSpace,
    /// True if each vCPU of the VM has so many.
    pub is_per_vcpu: bool,
}

/// The facts of a virtual device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Number of the device in a system image. A number is never used again for another device.
    pub number: u32,
    /// The part it plays.
    pub role: DeviceRole,
    /// Its windows.
    pub windows: [WindowFacts; 2],
    /// The interrupt lines that it takes if it has an interrupt. They are at consecutive numbers.
    pub lines: u32,
    /// Number of the driver that the board's own interrupt controller must have, 0 for any.
    pub needs: u32,
}

/// A device has at most two windows.
const NO_WINDOW: WindowFacts = window(0);

impl DeviceFacts {
    /// Returns the same device under another number, with its registers in another address space.
    #[must_use]
    pub const fn at(self, number: u32, space: AddressSpace) -> Self {
        let [first, second] = self.windows;
        Self {
            number,
            windows: [WindowFacts { space, ..first }, WindowFacts { space, ..second }],
            ..self
        }
    }
}

const fn window(size: u64) -> WindowFacts {
    WindowFacts {
        size,
        space: AddressSpace::Memory,
        is_per_vcpu: false,
    }
}

/// Returns a device with one window, which works on every board.
const fn plain(number: u32, role: DeviceRole, size: u64) -> DeviceFacts {
    DeviceFacts {
        number,
        role,
        windows: [window(size), NO_WINDOW],
        lines: 1,
        needs: 0,
    }
}

/// Bytes of a UART's registers (Arm DDI 0183G, section 3.2; Arm DDI 0479D, section 4.3).
const UART_SIZE: u64 = 0x1000;

/// Virtual GICv3: windows distributor (Arm IHI 0069 section 12.8), redistributors (two frames each, section
/// 12.10).
pub const GIC_V3: DeviceFacts = DeviceFacts {
    number: 1,
    role: DeviceRole::Controller,
    windows: [
        window(0x1_0000),
        WindowFacts {
            is_per_vcpu: true,
            ..window(0x2_0000)
        },
    ],
    lines: 1,
    needs: super::driver::GIC_V3.number,
};

/// Virtual PL011 UART.
pub const PL011: DeviceFacts = plain(2, DeviceRole::Console(VirtualUart::Pl011), UART_SIZE);

/// Virtual GICv2: windows distributor (Arm IHI 0048B, section 4.1.2), CPU interface (section 4.1.3:
/// `GICC_DIR` is at 0x1000). It is possible only where the board has a GICv2.
pub const GIC_V2: DeviceFacts = DeviceFacts {
    number: 3,
    role: DeviceRole::Controller,
    windows: [window(0x1000), window(0x2000)],
    lines: 1,
    needs: super::driver::GIC_V2.number,
};

/// Virtual CMSDK UART. Its first line is the one for receive; the one for transmit is the next.
pub const CMSDK_UART: DeviceFacts = DeviceFacts {
    lines: 2,
    needs: super::driver::NVIC.number,
    ..plain(4, DeviceRole::Console(VirtualUart::Cmsdk), UART_SIZE)
};

/// The interrupt of the partition's event gate: level, high while there are events. No windows.
pub const EVENT_GATE: DeviceFacts = plain(5, DeviceRole::Gate, 0);

/// Bytes to which the banks of a flash are aligned, so that the tables of translation hold each in few
/// entries.
pub const FLASH_ALIGN: u64 = 2 << 20;

/// Virtual parallel flash with the Intel command set: two banks, as QEMU's board `virt` has.
pub const CFI_FLASH: DeviceFacts = DeviceFacts {
    windows: [window(FLASH_ALIGN), window(FLASH_ALIGN)],
    ..plain(7, DeviceRole::Flash, FLASH_ALIGN)
};

/// Virtual PCI host bridge: the configuration space of bus 0 (PCI Express 3.0, 7.2.2), and a page of
/// registers for each device on it. The functions have the lines of their sides.
pub const PCI_BRIDGE: DeviceFacts = DeviceFacts {
    windows: [window(0x10_0000), window(0x2_0000)],
    ..plain(8, DeviceRole::Bridge, 0)
};

/// Virtual LAN9118 Ethernet controller (datasheet, 5.3).
pub const LAN9118: DeviceFacts = plain(6, DeviceRole::Network, 0x100);

/// Virtual NS 16550A UART with registers in memory, a byte each (TI SLLS597, table 3).
pub const NS16550_MEMORY: DeviceFacts = plain(30, DeviceRole::Console(VirtualUart::Ns16550), 8);
/// Virtual NS 16550A UART at I/O ports (TI SLLS597, table 3).
pub const NS16550: DeviceFacts = DeviceFacts {
    windows: [
        WindowFacts {
            space: AddressSpace::Ports,
            ..window(8)
        },
        NO_WINDOW,
    ],
    ..plain(20, DeviceRole::Console(VirtualUart::Ns16550), 8)
};

/// The interrupt controllers of a PC, as one device: windows local APIC, I/O APIC.
pub const APIC: DeviceFacts = DeviceFacts {
    number: 21,
    role: DeviceRole::Controller,
    windows: [window(0x1000), window(0x1000)],
    lines: 1,
    needs: super::driver::APIC.number,
};
