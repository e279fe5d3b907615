// SPDX-License-Identifier: Apache-2.0
//! The list of rules: one code each, for ever. A code is never given a second meaning, and a rule that goes
//! leaves a gap. `tests/config-bad` holds one bad file per code, and a test fails if a file is missing.

/// The weight of a finding: it says whether the system can be built all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The system cannot be built.
    Error,
    /// The system works, but perhaps not as meant.
    Warning,
}

macro_rules! codes {
    ($($name:ident = $id:literal, $title:literal;)*) => {
        /// A rule of the manifest.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $name),* }

        impl Code {
            /// All rules, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the code as printed: `E` for errors, `W` for warnings, and three digits.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id),* }
            }

            /// Returns the finding of the rule, in one line.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }
        }
    };
}

codes! {
    Unreadable = "E001", "The manifest or the board file cannot be read.";
    Syntax = "E002", "The file is not valid TOML.";
    DuplicateName = "E003", "A name or key is defined twice.";
    UnknownKey = "E004", "A key is not known.";
    MissingKey = "E005", "A required key is missing.";
    WrongType = "E006", "A value has the wrong type.";
    OutOfRange = "E007", "A number is outside its range.";
    BadUnit = "E008", "A size or duration cannot be understood.";
    UnknownChoice = "E009", "A word is not one of the possible words.";
    UnknownBoard = "E010", "There is no board of this name.";
    BadBoard = "E011", "The board file contradicts itself.";
    NoPartition = "E012", "The manifest has no partition.";
    BadName = "E013", "A name has characters that are not allowed, or is too long.";
    ReservedName = "E014", "A name is taken by the hypervisor itself.";
    TooManyPartitions = "E015", "There are more partitions than the hypervisor has room for.";
    TooManyVcpus = "E016", "There are more vCPUs than the hypervisor has room for.";
    UnknownPcpu = "E017", "A pCPU does not exist on the board.";
    PinnedShared = "E018", "A pCPU with policy `pinned` has more than one vCPU.";
    CrowdedPcpu = "E019", "A pCPU has more vCPUs than its policy can hold.";
    NoVcpu = "E020", "A partition has no vCPU.";
    BadDuration = "E021", "A duration is too short or too long.";
    FrozenSmp = "E022", "A partition with more than one vCPU has frozen time.";
    ZeroSize = "E023", "A size is zero.";
    UnalignedSize = "E024", "A size is not a multiple of the page size.";
    UnalignedAddress = "E025", "An address is not a multiple of the page size.";
    GuestOverlap = "E026", "Two memory regions of a partition overlap.";
    VirtualOverlap = "E027", "Memory or a device of a partition overlaps one of its virtual devices.";
    GuestRange = "E028", "An address of a partition is beyond what the class can map.";
    OutsideRam = "E029", "Memory is placed outside the board's RAM.";
    PlaceOverlap = "E030", "Two partitions are placed on the same memory.";
    HypervisorMemory = "E031", "Memory is placed on the hypervisor's own memory.";
    RamExhausted = "E032", "The board's RAM is not enough for all partitions.";
    UnknownDevice = "E033", "The board has no device of this name.";
    DeviceTwice = "E034", "A device has two owners.";
    LineTwice = "E035", "An interrupt line has two owners.";
    HypervisorDevice = "E036", "A device is used by the hypervisor itself.";
    SharedPage = "E037", "A device shares its page of registers with a device of another owner.";
    UntrustedDma = "E038", "A device does DMA without IOMMU and without `trusted-dma`.";
    DmaNeedsIdentity = "E039", "A device does DMA into memory that is not where the partition sees it.";
    NotForTask = "E040", "A task is given something that only a VM can have.";
    InitWithoutInitramfs = "E041", "`init` is given without `ramdisk = \"@debian/initramfs\"`.";
    CapabilityShape = "E042", "A capability does not name exactly one object.";
    CapabilityTarget = "E043", "A capability names an object that does not exist.";
    CapabilityRight = "E044", "A right has no meaning for the object of a capability.";
    TooManyCapabilities = "E045", "A partition has more capabilities than its space has slots.";
    WatchTarget = "E046", "A partition that does not exist is watched.";
    WatchWithoutGate = "E047", "A partition watches others, but cannot wait at its own event gate.";
    ImpossibleAction = "E048", "A health action is impossible for this class of event or kind of partition.";
    BadMachine = "E049", "An interrupt controller or UART window of a virtual machine is not possible.";
    BadLine = "E050", "A virtual interrupt line is taken or does not exist.";
    PayloadMissing = "E051", "A payload does not exist.";
    PayloadUnreadable = "E052", "A payload exists, but cannot be read as a file.";
    PayloadName = "E053", "A named payload is not known or cannot be provided.";
    PayloadEmpty = "E054", "A payload is empty.";
    PayloadTooLarge = "E055", "A payload is larger than the memory it must go to.";
    PayloadKind = "E056", "A payload is of a kind that cannot be loaded.";
    ElfDamaged = "E057", "An ELF file is truncated or damaged.";
    ElfMachine = "E058", "An ELF file is for another machine.";
    ElfOutside = "E059", "A segment of an ELF file, or a part of another image, is outside the partition's memory.";
    ImageDamaged = "E060", "A Linux Image is truncated or not possible here.";
    GzipDamaged = "E061", "A gzip file is damaged.";
    TaskNeedsElf = "E062", "The image of a task is not an ELF file.";
    EntryOutside = "E063", "The first instruction is not in the partition's memory.";
    DoesNotFit = "E064", "Image, ramdisk and device tree do not fit into the partition's memory together.";
    BadOverlay = "E065", "A device tree overlay cannot be compiled or applied.";
    NoImage = "E066", "A partition has nothing to run.";
    TooManyMappings = "E067", "A partition needs more mappings, pieces of payloads or alternatives than a system image holds, or a board more tables than the hypervisor has.";
    ModulesWithoutKernel = "E070", "`modules` is given, but not for a kernel and a RAM disk of Debian's.";
    Attachment = "E071", "A disk or a network cannot be attached to the emulator as asked.";
    NotForClass = "E081", "Something is given that has no meaning on the class of the board.";
    CannotRewrite = "E082", "Code of a program cannot be told from data, so its instructions cannot be replaced.";
    NoVectors = "E083", "A program has no vector table where it should be.";
    TooManyRegions = "E084", "The memory of a partition needs more regions than the MPU has, or is memory that no partition can have.";
    ForeignParameter = "E072", "A scheduling parameter is given that the policy of the pCPU does not have.";
    BadServer = "E073", "Budget, period and deadline of a vCPU contradict each other.";
    EmptySchedule = "E074", "A policy is without its schedules or domains, or a schedule is without windows.";
    WindowOutside = "E075", "A window ends after its frame.";
    WindowOverlap = "E076", "Two windows of a schedule overlap.";
    WindowPartition = "E077", "A window is for a partition that has no vCPU on the pCPU.";
    UnknownDomain = "E078", "A vCPU is in no time domain, or in one that does not exist.";
    TooManyWindows = "E079", "A pCPU has more schedules, windows or domains than its policy can hold.";
    Overcommitted = "E080", "Budgets promise more time than a pCPU has.";
    BadTrace = "E085", "The rings of the trace have a length that is no power of two.";
    BadTask = "E090", "A task of a demand contradicts itself.";
    BadWorkload = "E091", "A workload contradicts itself.";
    NotSchedulable = "E092", "A partition cannot be shown to do what it declares in time.";
    UnknownNetwork = "E093", "A partition is on a network that does not exist.";
    BadNetwork = "E094", "A network, or an interface to one, is not possible.";
    BadMac = "E095", "A MAC address is malformed, stands for a group, or is given twice.";
    BadBootargs = "E096", "A kernel command line is not possible.";
    BadPort = "E097", "There are more ports or locks, or more memory for messages, than the hypervisor has room for; or a port has not the room or the event that a capability names.";
    BadChannel = "E098", "A channel, or a side of one, is not possible.";
    BadService = "E099", "A service, or a client of one, is not possible.";
    ArincPartition = "E100", "An ARINC 653 partition is not possible, or lacks what its services need.";
    ArincWindows = "E101", "The windows do not give an ARINC 653 partition its duration in each of its periods.";
    ArincPort = "E102", "An ARINC 653 port does not agree with the port of the manifest, or with its other end.";
    ArincProcess = "E103", "An ARINC 653 process is not possible in its partition.";
    BadDirect = "E104", "A partition cannot take the interrupts of its pCPU itself.";
    BadInit = "E105", "A file cannot become the first program of Linux.";
    OddEntry = "E106", "No instruction is at the address of the first one.";
    BadOwnPolicy = "E107", "The crate of a policy of your own cannot be built in.";
    NoGate = "E108", "A device of a partition cannot be kept from the others: the board file gives no gate of it.";
    HexDamaged = "E109", "A file of Intel HEX is truncated or damaged.";
    NotMovable = "E110", "A program cannot be moved to another address.";
    BadKey = "E111", "Images cannot be signed for a key, or no image could ever be run.";
    BadSecret = "E112", "A secret of a partition could be read by others, or is given twice.";
    IdlePcpu = "W101", "A pCPU is configured, but no vCPU uses it.";
    UnusedAction = "W102", "A health action can never be taken.";
    NeverStarted = "W103", "A partition is not started at boot, and no partition can start it.";
    WritableCode = "W104", "A page of a task is writable and executable.";
    OddRamdisk = "W105", "A ramdisk is no archive that Linux knows.";
    SilentConsole = "W106", "A kernel is told to use a console that the partition does not have.";
    UnusedQuantum = "W107", "A quantum is given for a policy that has none.";
    UnusedAttachment = "W110", "A disk or a network is attached to a device that no partition owns.";
    SharedPcpu = "W111", "Two vCPUs of a partition share a pCPU.";
    EndlessRestart = "W112", "A partition is restarted by a health action without a limit.";
    ShortWatchdog = "W113", "A watchdog can pass while a neighbour of the same priority has its turn.";
    OddMemory = "W114", "Memory is no multiple of what one translation entry can map.";
    WeakSupervisor = "W115", "A supervisor has a lower priority than a partition it controls on its pCPU.";
    NoWindow = "W116", "A vCPU has no window in any schedule, or a domain has no vCPU.";
    UnusedPriority = "W117", "A priority is given for a policy or a scheduler that does not read it.";
    UnusedLimit = "W118", "A limit of restarts is given, but no health action restarts.";
    EqualPriority = "W119", "Partitions take turns on a pCPU because the manifest does not say which is more urgent.";
    UselessFrozen = "W120", "Frozen time has no effect on a pCPU that is not shared.";
    UnstoppedDma = "W121", "A device may go on doing DMA while its partition is restarted.";
    WarmKernel = "W122", "A Linux kernel is restarted warm, which it cannot stand.";
    NoRoot = "W123", "A Linux kernel has neither a RAM disk nor a root file system.";
    LittleMemory = "W124", "A Linux kernel has hardly any memory beside what is loaded.";
    NoOverheads = "W125", "A demand is judged on a board whose file does not give the costs of the hypervisor.";
    ShortLatency = "W126", "A latency is promised that the hypervisor may not be able to keep.";
    Semihosting = "W127", "A program of a microcontroller can call a debugger that is not there.";
    WorkBeyondDemand = "W128", "A workload is more than the demand that is judged.";
    UnusedTime = "W129", "A time is given for work that is always ready.";
    FirmwareImage = "W130", "Firmware that runs from flash is loaded like any other binary.";
    CrowdedPort = "W131", "A port has no room for a message of each of its senders.";
    EmptyEntry = "W132", "A partition begins where nothing is loaded.";
    CallCircle = "W133", "Calls can wait in a circle that the hypervisor does not refuse.";
    NoFirstProgram = "W134", "A RAM disk has no first program that Linux can start.";
    NotAnalysed = "W135", "A policy of your own is not analysed.";
    CrowdedServer = "W136", "A server has fewer free slots than vCPUs may call it.";
    DeviceEvent = "W137", "A task cannot wait for the interrupts of its device, or something else raises the same event.";
}

impl Code {
    /// Returns the severity of the code.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self.id().as_bytes() {
            [b'W', ..] => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
