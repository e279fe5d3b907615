// SPDX-License-Identifier: Apache-2.0
//! The numbers of the system image: the order of its tables, the types of records, and their flags.

#[cfg(doc)]
use super::{
    AlternativeRecord, BoardRecord, CapabilityRecord, ChannelRecord, ControllerRecord, DomainRecord,
    InterruptRecord, LoadRecord, LockRecord, LookalikeRecord, MapRecord, MemoryRecord, NicRecord,
    PartitionRecord, PayloadRecord, PcpuRecord, PortRecord, RegistersRecord, ResidentRecord, ScheduleRecord,
    ServedRecord, SideRecord, VcpuRecord, VirtualDeviceRecord, WatchRecord, WindowRecord,
};
use bulkhead_arch_api::class::device;
use bulkhead_arch_api::class::driver::{self, Role};

/// Index of the [`BoardRecord`] table.
pub const SECTION_BOARD: usize = 0;
/// Index of the [`PcpuRecord`] table.
pub const SECTION_PCPUS: usize = 1;
/// Index of the [`MapRecord`] table.
pub const SECTION_MAP: usize = 2;
/// Index of the [`ControllerRecord`] table.
pub const SECTION_CONTROLLERS: usize = 3;
/// Index of the [`PartitionRecord`] table.
pub const SECTION_PARTITIONS: usize = 4;
/// Index of the [`VcpuRecord`] table.
pub const SECTION_VCPUS: usize = 5;
/// Index of the [`MemoryRecord`] table.
pub const SECTION_MEMORY: usize = 6;
/// Index of the [`LoadRecord`] table.
pub const SECTION_LOADS: usize = 7;
/// Index of the [`PayloadRecord`] table.
pub const SECTION_PAYLOADS: usize = 8;
/// Index of the [`InterruptRecord`] table.
pub const SECTION_INTERRUPTS: usize = 9;
/// Index of the [`VirtualDeviceRecord`] table.
pub const SECTION_VIRTUAL_DEVICES: usize = 10;
/// Index of the [`CapabilityRecord`] table.
pub const SECTION_CAPABILITIES: usize = 11;
/// Index of the [`WatchRecord`] table.
pub const SECTION_WATCHES: usize = 12;
/// Index of the [`AlternativeRecord`] table.
pub const SECTION_ALTERNATIVES: usize = 13;
/// Index of the [`RegistersRecord`] table.
pub const SECTION_REGISTERS: usize = 14;
/// Index of the [`ScheduleRecord`] table.
pub const SECTION_SCHEDULES: usize = 15;
/// Index of the [`WindowRecord`] table.
pub const SECTION_WINDOWS: usize = 16;
/// Index of the [`DomainRecord`] table.
pub const SECTION_DOMAINS: usize = 17;
/// Index of the [`ResidentRecord`] table.
pub const SECTION_RESIDENTS: usize = 18;
/// Index of the [`LookalikeRecord`] table, in ascending order of the addresses.
pub const SECTION_LOOKALIKES: usize = 19;
/// Index of the [`NicRecord`] table.
pub const SECTION_NICS: usize = 20;
/// Index of the [`PortRecord`] table.
pub const SECTION_PORTS: usize = 21;
/// Index of the [`LockRecord`] table.
pub const SECTION_LOCKS: usize = 22;
/// Index of the [`ChannelRecord`] table.
pub const SECTION_CHANNELS: usize = 23;
/// Index of the [`SideRecord`] table.
pub const SECTION_SIDES: usize = 24;
/// Index of the [`ServedRecord`] table.
pub const SECTION_SERVED: usize = 25;
/// Tables.
pub const SECTION_COUNT: usize = 26;

/// The server may write the memory that the client grants.
pub const SERVED_WRITES: u32 = 1;
/// An access without an answer in time is a fault of the client. Else a load reads all ones, and a store does
/// nothing.
pub const SERVED_FAULTS: u32 = 2;
/// The registers belong to a virtio device over MMIO. The hypervisor answers the registers of the interrupt,
/// and a notification does not wait.
pub const SERVED_VIRTIO: u32 = 4;

/// Policy `pinned`.
pub const POLICY_PINNED: u32 = 1;
/// Policy `fixed-priority`.
pub const POLICY_FIXED_PRIORITY: u32 = 2;
/// Policy `edf`.
pub const POLICY_EDF: u32 = 3;
/// Policy `arinc653`.
pub const POLICY_ARINC653: u32 = 4;
/// Policy `domains`.
pub const POLICY_DOMAINS: u32 = 5;
// A policy of the user's own has a number with this bit.
pub use bulkhead_abi::own_policy::POLICY_OWN;

/// No budget.
pub const SERVER_NONE: u32 = 0;
/// Sporadic server (`fixed-priority`).
pub const SERVER_SPORADIC: u32 = 1;
/// Deferrable server (`fixed-priority`).
pub const SERVER_DEFERRABLE: u32 = 2;
/// Constant-bandwidth server (`edf`).
pub const SERVER_CONSTANT_BANDWIDTH: u32 = 3;

/// The partition's periodic processing starts with the window.
pub const WINDOW_PERIOD_START: u32 = 1;

/// RAM of the board.
pub const MAP_RAM: u32 = 1;
/// Device registers.
pub const MAP_DEVICE: u32 = 2;
/// Code memory: flash, or RAM that is loaded with the flashable file and not written afterwards.
pub const MAP_CODE: u32 = 3;

/// The console UART.
pub const ROLE_CONSOLE: u32 = Role::Console.number();
/// The interrupt controller.
pub const ROLE_INTERRUPTS: u32 = Role::Interrupts.number();
/// The system timer.
pub const ROLE_TIMER: u32 = Role::Timer.number();
/// The board's interface to network 0.
pub const ROLE_NETWORK: u32 = Role::Network.number();
/// The controllers that say which world may reach memory and devices. There can be several.
pub const ROLE_SECURITY: u32 = Role::Security.number();
/// The parts by which CPUs start and interrupt each other.
pub const ROLE_PROCESSORS: u32 = Role::Processors.number();

/// Arm PrimeCell PL011 UART.
pub const CONTROLLER_PL011: u32 = driver::PL011.number;
/// Arm GICv3.
pub const CONTROLLER_GIC_V3: u32 = driver::GIC_V3.number;
/// Arm generic timer.
pub const CONTROLLER_ARM_TIMER: u32 = driver::ARM_TIMER.number;
/// Arm GICv2 with virtualization extensions: windows distributor, CPU interface, virtual interface
/// control, virtual CPU interface.
pub const CONTROLLER_GIC_V2: u32 = driver::GIC_V2.number;
/// Cadence UART.
pub const CONTROLLER_CADENCE_UART: u32 = driver::CADENCE_UART.number;

/// CMSDK APB UART: lines for receive and for transmit.
pub const CONTROLLER_CMSDK_UART: u32 = driver::CMSDK_UART.number;
/// The interrupt controller of an M-profile CPU, at its architected place.
pub const CONTROLLER_NVIC: u32 = driver::NVIC.number;
/// Dual timer (SP804), with a window of its registers and one with the registers of the free-running counter
/// of an MPS2 board.
pub const CONTROLLER_DUAL_TIMER: u32 = driver::DUAL_TIMER.number;
/// SMSC LAN9118 Ethernet controller.
pub const CONTROLLER_LAN9118: u32 = driver::LAN9118.number;
/// The secure privilege control block of an IoT Kit, with the registers of the peripheral protection
/// controllers. There is at most one.
pub const CONTROLLER_IOTKIT_SECURITY: u32 = driver::IOTKIT_SECURITY.number;
/// A memory protection controller: windows registers, memory that it guards. There is one for each memory.
pub const CONTROLLER_ARM_MPC: u32 = driver::ARM_MPC.number;
/// The parts of an SSE-200 for its second CPU: windows system control, message handling unit.
pub const CONTROLLER_SSE200: u32 = driver::SSE200.number;
/// UART 0 of a PPC405EP.
pub const CONTROLLER_PPC405EP_UART: u32 = driver::PPC405EP_UART.number;
/// Universal interrupt controller of a PowerPC 4xx.
pub const CONTROLLER_UIC: u32 = driver::UIC.number;
/// Time base and programmable interval timer of a PowerPC 4xx.
pub const CONTROLLER_PPC_TIMER: u32 = driver::PPC_TIMER.number;

/// NS 16550A UART at I/O ports.
pub const CONTROLLER_NS16550: u32 = driver::NS16550.number;
/// The APICs of a PC: windows local APIC, I/O APIC.
pub const CONTROLLER_APIC: u32 = driver::APIC.number;
/// The power management timer of ACPI.
pub const CONTROLLER_ACPI_TIMER: u32 = driver::ACPI_TIMER.number;

/// Bytes of memory for the frames of a network interface.
pub const NIC_MEMORY: u64 = 8192;
/// The VM sees the memory for its frames.
pub const NIC_FRAME_RING: u32 = 1 << 8;

/// A VM partition.
pub const PARTITION_VM: u32 = 1;
/// A task partition.
pub const PARTITION_TASK: u32 = 2;

/// The partition starts at boot.
pub const FLAG_AUTOSTART: u32 = 1;
/// Its time stands still while it is ready but not running.
pub const FLAG_FROZEN_TIME: u32 = 2;
/// The starts of its windows raise events at its gate.
pub const FLAG_WINDOW_EVENTS: u32 = 8;
/// Its calls of a debugger are not answered (class `armv7m`, VMs only).
pub const FLAG_NO_SEMIHOSTING: u32 = 16;
/// It takes the interrupts of its pCPU itself (a VM with one vCPU, alone on a pCPU other than 0).
pub const FLAG_DIRECT: u32 = 32;

/// Loads allowed.
pub const MEMORY_READ: u32 = 1;
/// Stores allowed.
pub const MEMORY_WRITE: u32 = 2;
/// Instruction fetches allowed.
pub const MEMORY_EXECUTE: u32 = 4;
/// Device registers, not RAM.
pub const MEMORY_DEVICE: u32 = 8;
/// Cleared (where no payload is copied) when the partition starts cold.
pub const MEMORY_CLEAR: u32 = 16;
/// The memory of a channel, which other sides see, too.
pub const MEMORY_SHARED: u32 = 32;

/// Level-triggered.
pub const TRIGGER_LEVEL: u32 = 0;
/// Edge-triggered.
pub const TRIGGER_EDGE: u32 = 1;

/// Bytes of the mask words of a vCPU, which begin at a multiple of this.
pub const MASK_WORDS_SIZE: u32 = 32;

/// The vCPU that handles the interrupt does so in domain 0 (policy `domains`).
pub const INTERRUPT_CRITICAL: u32 = 1;
/// The handler of the vCPU may start early (see `LineRoute` of the boundary), for up to the record's latency,
/// which is not 0. All such records have one partition and one latency.
pub const INTERRUPT_EARLY: u32 = 2;
/// Longest early start.
pub const MAX_EARLY_NS: u32 = 1_000_000;
/// Longest constant latency of an interrupt.
pub const MAX_LATENCY_NS: u32 = 10_000_000;

/// The side may write the memory of the channel.
pub const SIDE_WRITES: u32 = 1;
/// The side is a PCI function under the host bridge of its VM, with INTx on the virtual line.
pub const SIDE_FUNCTION: u32 = 2;
/// The memory is mapped only while the side holds a capability for the channel. Its mapping allows nothing.
pub const SIDE_HELD: u32 = 4;
/// The memory is the registers of a device of the board. All sides are so, and are held.
pub const SIDE_DEVICE: u32 = 8;
/// With [`SIDE_DEVICE`]: the line of the device is edge-triggered.
pub const SIDE_EDGE: u32 = 16;

/// The secret follows from the device and the partition: it is the same under each image.
pub const SECRET_OF_DEVICE: u32 = 0;
/// The secret also follows from what the partition is started with.
pub const SECRET_OF_PROGRAM: u32 = 1;
/// The secret follows from the whole system image and the class binary as well.
pub const SECRET_OF_SYSTEM: u32 = 2;

/// A receiver learns the number of the sender.
pub const PORT_IDENTIFIES: u32 = 1;

/// They share a page with registers of others: the page is not mapped, and each access is carried out for the
/// owner.
pub const REGISTERS_FORWARDED: u32 = 1;
/// When the partition has ended, a register is written that stops the device.
pub const REGISTERS_QUIESCED: u32 = 2;
/// A bit of the board's security controller says whether non-secure software reaches them.
pub const REGISTERS_GATED: u32 = 4;

/// Virtual GICv3: windows distributor, redistributors.
pub const VIRTUAL_GIC_V3: u32 = device::GIC_V3.number;
/// Virtual PL011 UART.
pub const VIRTUAL_PL011: u32 = device::PL011.number;
/// Virtual GICv2: windows distributor, CPU interface. It is possible only where the board has a GICv2.
pub const VIRTUAL_GIC_V2: u32 = device::GIC_V2.number;
/// Virtual CMSDK UART. Its virtual line is the one for receive; the one for transmit is the next.
pub const VIRTUAL_CMSDK_UART: u32 = device::CMSDK_UART.number;
/// The interrupt of the partition's event gate: level, high while there are events. No windows.
pub const VIRTUAL_EVENT_GATE: u32 = device::EVENT_GATE.number;
/// Virtual PCI host bridge: windows configuration space, registers. No line of its own.
pub const VIRTUAL_PCI_BRIDGE: u32 = device::PCI_BRIDGE.number;
/// Virtual NS 16550A UART at I/O ports.
pub const VIRTUAL_NS16550: u32 = device::NS16550.number;
/// The interrupt controllers of a PC: windows local APIC, I/O APIC.
pub const VIRTUAL_APIC: u32 = device::APIC.number;
/// Virtual LAN9118 Ethernet controller, with a record in the table of [`NicRecord`]s.
pub const VIRTUAL_LAN9118: u32 = device::LAN9118.number;
/// [`VirtualDeviceRecord::kind`]: parallel flash; both windows: banks.
pub const VIRTUAL_CFI_FLASH: u32 = device::CFI_FLASH.number;
