// SPDX-License-Identifier: Apache-2.0
//! Records of the system image.
//!
//! Every record is plain data of fixed size. An index into another table is a `U32`; [`NONE`] stands
//! for "no such record".

mod numbers;

pub use crate::number::{U32, U64};
pub use bulkhead_abi::HealthAction;
pub use numbers::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a system image.
pub const MAGIC: [u8; 8] = *b"BULKHEAD";
/// Revision of this layout; a reader accepts its own only.
pub const FORMAT: u32 = 13;
/// "No such record".
pub const NONE: u32 = u32::MAX;
/// Bytes of a name, NUL padded UTF-8.
pub const NAME_LEN: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_LEN: usize = 64;
/// Bytes of the message that is signed.
pub const MESSAGE_LEN: usize = 64;
/// Bytes of a public key.
pub const KEY_LEN: usize = 32;
/// Most keys in a class binary: the one of today, and its successor.
pub const MAX_KEYS: usize = 2;
/// First bytes of a [`TrustRecord`].
pub const TRUST_MAGIC: [u8; 16] = *b"BULKHEAD TRUST\0\x01";
/// Multiple at which each payload starts.
pub const PAYLOAD_ALIGN: u64 = 4096;
/// Last bytes of a system image, at the next multiple of 8 after the last payload. A loader that knows no
/// file sizes still notices that a file was cut off.
pub const END_MARK: [u8; 8] = *b"DAEHKLUB";

macro_rules! records {
    ($($(#[$meta:meta])* $name:ident { $($(#[$fmeta:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
            #[repr(C)]
            pub struct $name { $($(#[$fmeta])* pub $field: $ty),* }
        )*
    };
}

records! {
    /// Name of something, NUL padded UTF-8.
    Name {
        /// The bytes.
        bytes: [u8; NAME_LEN],
    }
    /// Where a table is.
    Section {
        /// Bytes from the start of the image.
        offset: U32,
        /// Records.
        count: U32,
    }
    /// Start of the image.
    Header {
        /// [`MAGIC`].
        magic: [u8; 8],
        /// [`FORMAT`].
        format: U32,
        /// Number of the class of the board ([`bulkhead_arch_api::ClassFacts`]).
        class: U32,
        /// Bytes of the whole image, payloads included.
        total_len: U64,
        /// Bytes from the start to the end of the last table; payloads start after.
        tables_len: U64,
        /// SHA-256 of the bytes from the end of the signature to `tables_len`, followed by those before this
        /// field.
        digest: [u8; 32],
        /// Ed25519 signature (RFC 8032) of [`Header::message`]; zeros if the image is not signed.
        signature: [u8; SIGNATURE_LEN],
        /// The version of the system, which grows with each release; 0 if it has none.
        version: U64,
        /// SHA-256 of the instructions and constants of the class binary that the image is made for; zeros if
        /// the class binary does not check itself.
        class_binary: [u8; 32],
        /// Name of the board.
        board: Name,
        /// The tables, in the order of the constants `SECTION_*`.
        sections: [Section; SECTION_COUNT],
    }
    /// The record in a class binary with the part `signature`: whose images it runs. The host tool writes the
    /// record into the finished class binary.
    TrustRecord {
        /// [`TRUST_MAGIC`].
        magic: [u8; 16],
        /// Keys that are in use, from the first one on; 0: no image is run.
        count: U32,
        /// Reserved, 0.
        reserved: U32,
        /// Public keys of Ed25519.
        keys: [[u8; KEY_LEN]; MAX_KEYS],
        /// The least version that is run.
        least_version: U64,
        /// The board's console, for the reason why an image is refused.
        console: ControllerRecord,
        /// Bytes of the class binary's instructions and constants before this record, for the host.
        constants_before: U64,
        /// Bytes of all of them.
        constants_len: U64,
        /// The address for which they are linked.
        constants_address: U64,
        /// Bytes at their end that list the addresses in them, if the class binary moves itself: a table RELR
        /// (System V ABI, "Relative relocations").
        relocations_len: U64,
        /// Reserved, 0.
        more: [U64; 4],
    }
    /// The first bytes of an image that is sound: the record of the board follows the header.
    Start {
        /// The header.
        header: Header,
        /// The board.
        board: BoardRecord,
    }
    /// Facts about the board that every class needs. One record.
    BoardRecord {
        /// Where on the bus the flashable file must be loaded.
        load_address: U64,
        /// Bytes from `load_address` on that belong to the hypervisor: class binary, image, and on `aarch64`
        /// the pool.
        hypervisor_size: U64,
        /// Bus address of the pool. `aarch64`: memory for translation tables, inside the hypervisor's.
        /// `armv7m`: all RAM of the hypervisor, which runs from code memory.
        pool_base: U64,
        /// Bytes of it, a multiple of the granule.
        pool_size: U64,
        /// Bus address at which this system image itself is found.
        image_base: U64,
        /// Bus address of the log area: RAM that no code clears, `bulkhead_abi::log::AREA_SIZE` bytes of it
        /// (`SMALL_AREA_SIZE` where tables are small).
        log_base: U64,
        /// [`NONE`], or the virtual time in milliseconds after which the hypervisor powers the board off.
        stop_after_ms: U32,
        /// Records of each pCPU's ring of the trace, a power of two; 0: nothing is traced.
        trace_records: U32,
        /// Bus address of the rings of all pCPUs (RAM of the hypervisor alone), 0 if there are none.
        trace_base: U64,
        /// Time in microseconds that frames from outside may take the hypervisor in each period; 0: any.
        network_budget_us: U32,
        /// That period in microseconds.
        network_period_us: U32,
        /// 1: exits that the backend answers without the kernel are traced as well; else 0.
        trace_short_exits: U32,
        /// The parts of the kernel that the system uses (`bulkhead_abi::parts::Parts`).
        parts: U32,
    }
    /// A physical CPU that the system uses.
    PcpuRecord {
        /// The CPU's own identification (aarch64: MPIDR_EL1 affinity fields).
        hardware_id: U64,
        /// Policy, `POLICY_*`.
        policy: U32,
        /// Turn of a vCPU among its equals in microseconds; not for `pinned`.
        quantum_us: U32,
    }
    /// A stretch of the board's address space that the hypervisor itself uses or must know.
    MapRecord {
        /// Bus address.
        base: U64,
        /// Bytes.
        size: U64,
        /// `MAP_*`.
        kind: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// A device the hypervisor itself drives.
    ControllerRecord {
        /// Its role, `ROLE_*`.
        role: U32,
        /// Its type, `CONTROLLER_*`.
        compatible: U32,
        /// Register windows: bus addresses (GICv3: distributor, redistributors; GICv2: see
        /// [`CONTROLLER_GIC_V2`]; UART: registers; [`CONTROLLER_ARM_MPC`]: registers, and the memory that it
        /// guards).
        base: [U64; 4],
        /// Bytes of each window.
        size: [U64; 4],
        /// Interrupt lines (UART: its line; GIC: maintenance; timer: hypervisor, virtual, physical; NVIC: the
        /// first and the last line for virtual devices of VMs, if those are lines of the board). [`NONE`] =
        /// none.
        lines: [U32; 4],
        /// Clock in Hz, 0 = not needed.
        clock_hz: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// A partition.
    PartitionRecord {
        /// Its name.
        name: Name,
        /// Its UUID.
        uuid: [u8; 16],
        /// First instruction (guest-physical); on `armv7m` with bit 0 set.
        entry: U64,
        /// First argument: device tree or startup page (guest-physical). A VM of class `armv7m`: its vector
        /// table.
        argument: U64,
        /// Initial stack pointer of a task, and of a VM of class `armv7m`; else 0.
        stack: U64,
        /// Watchdog period in nanoseconds, 0 = none.
        watchdog_ns: U64,
        /// `PARTITION_*`.
        kind: U32,
        /// `FLAG_*` bits.
        flags: U32,
        /// First record in the vCPU table; vCPUs of a partition are consecutive.
        first_vcpu: U32,
        /// Its vCPUs.
        vcpu_count: U32,
        /// Line of the manifest where it starts, for reports.
        manifest_line: U32,
        /// Restarts by a health action before it stays failed; [`NONE`] = no limit.
        restart_limit: U32,
        /// Virtual interrupt lines, private ones included; 0 for a task.
        virtual_lines: U32,
        /// The state in which its first vCPU starts: an index into the entry states of the class.
        entry_state: U32,
        /// Health action per class, [`HealthAction`], indexed by `HealthClass as usize` (0 unused).
        health: [u8; 8],
    }
    /// A virtual CPU.
    VcpuRecord {
        /// Its partition.
        partition: U32,
        /// The pCPU it is bound to.
        pcpu: U32,
        /// Priority, 0..=31.
        priority: U32,
        /// The way its budget comes back, `SERVER_*`.
        server: U32,
        /// Its time domain, counted among its pCPU's; [`NONE`] unless the policy is `domains`.
        domain: U32,
        /// Address of its mask words (guest-physical), [`MASK_WORDS_SIZE`] bytes; 0 = none.
        masks: U32,
        /// Execution time per period in nanoseconds; 0 = no server.
        budget_ns: U64,
        /// Period of the server; 0 = no server.
        period_ns: U64,
        /// Relative deadline; 0 unless the policy is `edf` and there is a server.
        deadline_ns: U64,
    }
    /// A schedule of a pCPU with policy `arinc653`. The schedules of a pCPU are consecutive, in the order of
    /// the pCPUs; the first one is its schedule number 0, with which it starts.
    ScheduleRecord {
        /// Its name.
        name: Name,
        /// The pCPU.
        pcpu: U32,
        /// First record in the window table; the windows of a schedule are consecutive.
        first_window: U32,
        /// Its windows.
        window_count: U32,
        /// Reserved, 0.
        reserved: U32,
        /// Length of the frame in nanoseconds.
        frame_ns: U64,
    }
    /// A window of a schedule. The windows of a schedule are in the order of their offsets.
    WindowRecord {
        /// The partition whose vCPUs (those on the pCPU of the schedule) run in it.
        partition: U32,
        /// `WINDOW_*` bits.
        flags: U32,
        /// Its start, from the start of the frame, in nanoseconds.
        offset_ns: U64,
        /// Its length.
        duration_ns: U64,
    }
    /// A time domain of a pCPU with policy `domains`. The domains of a pCPU are consecutive, in the order of
    /// the pCPUs; the first one is its domain number 0.
    DomainRecord {
        /// Its name.
        name: Name,
        /// The pCPU.
        pcpu: U32,
        /// Reserved, 0.
        reserved: U32,
        /// Execution time per cycle of all domains, in nanoseconds.
        budget_ns: U64,
    }
    /// A mapping in a partition's space.
    MemoryRecord {
        /// The partition.
        partition: U32,
        /// `MEMORY_*` bits.
        flags: U32,
        /// Guest-physical address.
        guest: U64,
        /// Bus address.
        host: U64,
        /// Bytes, a multiple of the page size.
        size: U64,
        /// Line of the manifest that asks for it, 0 = none.
        manifest_line: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// A piece of a payload to copy when a partition (re)starts; everything else of RAM is cleared.
    LoadRecord {
        /// The partition.
        partition: U32,
        /// The payload.
        payload: U32,
        /// Guest-physical address; `size` bytes from here are in one RAM mapping.
        guest: U64,
        /// First byte within the payload.
        offset: U64,
        /// Bytes to copy.
        size: U64,
        /// For which alternative of the partition: 0 = its own payloads, n = its alternative number n.
        alternative: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// Other payloads that a partition can run instead of its own. A partition's are consecutive, in
    /// the order of the partitions; the first one is its alternative number 1.
    AlternativeRecord {
        /// Its name.
        name: Name,
        /// The partition.
        partition: U32,
        /// Line of the manifest where it starts, for reports.
        manifest_line: U32,
        /// First instruction (guest-physical).
        entry: U64,
        /// First argument: device tree or startup page (guest-physical).
        argument: U64,
        /// Initial stack pointer of a task, else 0.
        stack: U64,
    }
    /// Bytes that lie in code memory where their owner is linked: executed or read in place, never copied,
    /// and not written once the board runs. The instructions of a VM that have to be replaced are
    /// replaced already.
    ResidentRecord {
        /// Its name, for reports.
        name: Name,
        /// The partition.
        partition: U32,
        /// Reserved, 0.
        reserved: U32,
        /// Bus address.
        address: U64,
        /// Bytes.
        size: U64,
        /// SHA-256 of them.
        digest: [u8; 32],
    }
    /// A place in a VM's code memory whose bits are an instruction that stands for a replaced one,
    /// although the host tool has replaced nothing there: an undefined instruction of the program's own, a
    /// constant, the middle of something else. Most programs have none.
    LookalikeRecord {
        /// Its address.
        address: U32,
    }
    /// A blob.
    PayloadRecord {
        /// Its name, for reports.
        name: Name,
        /// Bytes from the start of the image.
        offset: U64,
        /// Bytes.
        size: U64,
        /// SHA-256 of them.
        digest: [u8; 32],
    }
    /// A physical interrupt that belongs to a partition.
    InterruptRecord {
        /// The partition.
        partition: U32,
        /// Physical line.
        line: U32,
        /// Line the partition sees.
        virtual_line: U32,
        /// `TRIGGER_*`.
        trigger: U32,
        /// `INTERRUPT_*` bits.
        flags: U32,
        /// Nanoseconds from its arrival to its partition, at most [`MAX_LATENCY_NS`]; 0: as soon as possible.
        /// With [`INTERRUPT_EARLY`]: the longest early start of its handler.
        latency: U32,
    }
    /// A virtual device of a partition.
    VirtualDeviceRecord {
        /// The partition.
        partition: U32,
        /// `VIRTUAL_*`.
        kind: U32,
        /// Register windows: guest-physical addresses.
        base: [U64; 2],
        /// Bytes of each.
        size: [U64; 2],
        /// Virtual interrupt line, [`NONE`] = none.
        virtual_line: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// Registers of a device passed through with which the hypervisor helps their owner.
    RegistersRecord {
        /// The partition.
        partition: U32,
        /// `REGISTERS_*`, at least one.
        flags: U32,
        /// Guest-physical address.
        guest: U64,
        /// Bus address; the same within its page.
        host: U64,
        /// Bytes.
        size: U64,
        /// With [`REGISTERS_QUIESCED`]: offset of a 32-bit register.
        quiesce_offset: U32,
        /// With [`REGISTERS_QUIESCED`]: what is written to it.
        quiesce_value: U32,
        /// With [`REGISTERS_GATED`]: offset of a 32-bit register of [`CONTROLLER_IOTKIT_SECURITY`]. The
        /// register says for each device whether non-secure software reaches it. Else 0.
        gate_offset: U32,
        /// With [`REGISTERS_GATED`]: the bit of the device in that register, 0..=31. Else 0.
        gate_bit: U32,
    }
    /// A capability a partition holds from the start.
    CapabilityRecord {
        /// The holder.
        partition: U32,
        /// Index in the holder's space.
        index: U32,
        /// `bulkhead_abi::ObjectKind` as a number.
        kind: U32,
        /// Which object of that kind: a partition, an event gate, a console or a secret by its partition's
        /// number, the schedules of a pCPU by its number, a port, or a channel.
        object: U32,
        /// `bulkhead_abi::Rights` as a number.
        rights: U32,
        /// Of a capability for a port: in bits 7:0 the messages of the holder for which the port keeps room,
        /// in bits 15:8 the event that a message which has to wait raises at the holder's gate, plus one (0:
        /// no event). Of a capability for a secret: `SECRET_OF_*`. Else 0.
        detail: U32,
        /// Name the holder knows it by.
        name: Name,
    }
    /// A VM's interface to a network: what the switch of the hypervisor knows of it. Registers and interrupt
    /// line belong to its virtual device of kind [`VIRTUAL_LAN9118`]. The board's own interface, if the
    /// hypervisor drives one, is on network 0.
    NicRecord {
        /// The partition.
        partition: U32,
        /// Its network, counted from 0, and [`NIC_FRAME_RING`] or not.
        network: U32,
        /// Its MAC address, and two bytes 0.
        address: [u8; 8],
        /// Bus address of [`NIC_MEMORY`] bytes of RAM for frames, which no partition can reach. With
        /// [`NIC_FRAME_RING`] its own can, by a mapping of just these bytes. (No class with
        /// such a device translates addresses.)
        memory: U64,
    }
    /// A port: a queue of messages.
    PortRecord {
        /// Its name.
        name: Name,
        /// Bytes of its longest message.
        message_size: U32,
        /// Messages that wait in it at most.
        depth: U32,
        /// `PORT_*` bits.
        flags: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// A lock. It has only a name.
    LockRecord {
        /// Its name.
        name: Name,
    }
    /// A channel: RAM that its sides share, and a doorbell.
    ChannelRecord {
        /// Its name.
        name: Name,
        /// Bus address.
        host: U64,
        /// Bytes.
        size: U64,
        /// First record in the side table; the sides of a channel are consecutive.
        first_side: U32,
        /// Its sides.
        side_count: U32,
    }
    /// A partition at a channel. A mapping with [`MEMORY_SHARED`] goes with each.
    SideRecord {
        /// The channel.
        channel: U32,
        /// The partition.
        partition: U32,
        /// Guest-physical address of the memory.
        guest: U64,
        /// Virtual line on which the doorbell interrupts, [`NONE`] = none.
        virtual_line: U32,
        /// Event that the doorbell raises at the partition's gate, [`NONE`] = none.
        event: U32,
        /// `SIDE_*` bits.
        flags: U32,
        /// With [`SIDE_DEVICE`]: the physical line of the device and 1, or 0 if the device has no line. Else
        /// 0.
        line: U32,
    }
    /// A window of registers that another partition answers.
    ServedRecord {
        /// The partition that finds the window in its memory.
        client: U32,
        /// The partition that answers.
        server: U32,
        /// Guest-physical address of the window.
        guest: U64,
        /// Bytes of the window.
        size: U64,
        /// Guest-physical address of the client's memory that the server can reach.
        grant: U64,
        /// Bytes of that memory.
        grant_size: U64,
        /// Nanoseconds that the client waits for an answer at most.
        timeout_ns: U64,
        /// Virtual line of the client on which the window interrupts.
        virtual_line: U32,
        /// Event at the gate of the server when there is something to do.
        event: U32,
        /// `SERVED_*` bits.
        flags: U32,
        /// Reserved, 0.
        reserved: U32,
    }
    /// "When the state of `watched` changes, raise its event at the gate of `watcher`."
    WatchRecord {
        /// The partition whose gate is signalled.
        watcher: U32,
        /// The partition observed.
        watched: U32,
    }
}

impl VcpuRecord {
    /// Makes a vCPU without a budget and without a time domain.
    #[must_use]
    pub const fn plain(partition: u32, pcpu: u32, priority: u32) -> Self {
        Self {
            partition: U32::new(partition),
            pcpu: U32::new(pcpu),
            priority: U32::new(priority),
            server: U32::new(SERVER_NONE),
            domain: U32::new(NONE),
            masks: U32::ZERO,
            budget_ns: U64::ZERO,
            period_ns: U64::ZERO,
            deadline_ns: U64::ZERO,
        }
    }
}
