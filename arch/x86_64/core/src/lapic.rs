// SPDX-License-Identifier: Apache-2.0
//! A local APIC (Intel SDM 3A, chapter 11; AMD APM volume 2, chapter 16), xAPIC or x2APIC.
//!
//! Registers have the numbers of x2APIC: the offset of xAPIC divided by 16. Time is in ticks of the counter
//! that the guest reads as its TSC. The timer counts that counter, divided as DCR says.
//!
//! Interrupts from elsewhere come by [`Lapic::accept`]. The owner asks [`Lapic::deliverable`] before each
//! entry of the guest, and calls [`Lapic::take`] when the processor takes the vector.

/// APIC_BASE: the boot processor.
const BASE_BOOT: u64 = 1 << 8;
/// APIC_BASE.EXTD.
const BASE_EXTENDED: u64 = 1 << 10;
/// APIC_BASE.EN.
const BASE_ENABLED: u64 = 1 << 11;
/// Where the registers of xAPIC are.
pub const ADDRESS: u64 = 0xFEE0_0000;

const ID: u32 = 0x02;
const VERSION: u32 = 0x03;
const TASK_PRIORITY: u32 = 0x08;
const PROCESSOR_PRIORITY: u32 = 0x0A;
const ARBITRATION: u32 = 0x09;
const END: u32 = 0x0B;
const LOGICAL_DESTINATION: u32 = 0x0D;
const DESTINATION_FORMAT: u32 = 0x0E;
const SPURIOUS: u32 = 0x0F;
const IN_SERVICE: u32 = 0x10;
const TRIGGER_MODE: u32 = 0x18;
const REQUEST: u32 = 0x20;
const ERROR: u32 = 0x28;
const COMMAND: u32 = 0x30;
const COMMAND_HIGH: u32 = 0x31;
/// First of the local vector table: timer, thermal, performance, LINT0, LINT1, error.
const LOCAL: u32 = 0x32;
const INITIAL_COUNT: u32 = 0x38;
const CURRENT_COUNT: u32 = 0x39;
const DIVIDE: u32 = 0x3E;
const SELF_COMMAND: u32 = 0x3F;

/// Version 0x14, six local vectors.
const VERSION_VALUE: u32 = 0x14 | 5 << 16;
const SOFTWARE_ENABLED: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
/// The trigger mode of LINT0 and LINT1.
const LEVEL: u32 = 1 << 15;
const PERIODIC: u32 = 1;
const BY_DEADLINE: u32 = 2;
/// Sent illegal vector, illegal register address.
const ERROR_SENT: u32 = 1 << 5;
const ERROR_ADDRESS: u32 = 1 << 7;
/// The bits of each local vector, as far as a store may set them: mask and vector of all, and the mode of the
/// timer, the delivery mode of most, and polarity, state and trigger of the two lines. The delivery status is
/// always 0.
const LOCAL_BITS: [u32; 6] = [0x7_10FF, 0x1_17FF, 0x1_17FF, 0x1_F7FF, 0x1_F7FF, 0x1_10FF];
/// Delivery status, and remote state.
const READ_ONLY: u32 = 1 << 12 | 1 << 14;
/// The interrupt command of x2APIC: destination, shorthand, trigger, level, kind, vector; and the status,
/// which AMD's processors ignore.
const COMMAND_BITS: u64 = 0xFFFF_FFFF_000C_DFFF;
/// The delivery mode of the interrupt command, whether its destination is logical, and its shorthand of the
/// destination; the shorthand of the processor itself, with a fixed delivery.
const DELIVERY: u32 = 7 << 8;
const LOGICAL: u32 = 1 << 11;
const SHORTHAND: u32 = 3 << 18;
const OWN: u32 = 1 << 18;
/// The least ticks between two interrupts of a periodic timer: a processor with shorter ones would do nothing
/// but take them. An interrupt takes a VM some 2,000.
const SHORTEST: u64 = 10_000;

/// Interrupt command: where an interrupt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipi {
    /// The vector. With [`Delivery::Startup`] the page of the first instruction.
    pub vector: u8,
    /// Its kind.
    pub delivery: Delivery,
    /// Its receivers.
    pub target: Target,
}

/// The kind of an interrupt message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// An interrupt with a vector.
    Fixed,
    /// The same, to one of several processors.
    Lowest,
    /// A non-maskable interrupt.
    Nmi,
    /// Reset of a processor.
    Init,
    /// Start of a processor that was reset.
    Startup,
    /// An interrupt whose vector the 8259 knows.
    External,
    /// Anything else: no processor gets it.
    None,
}

impl Delivery {
    /// Decodes the field of three bits that all messages have.
    #[must_use]
    pub const fn decode(field: u32) -> Self {
        match field & 7 {
            0 => Self::Fixed,
            1 => Self::Lowest,
            4 => Self::Nmi,
            5 => Self::Init,
            6 => Self::Startup,
            7 => Self::External,
            _ => Self::None,
        }
    }
}

/// The processors that a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The sender.
    Own,
    /// Everybody.
    All,
    /// Everybody but the sender.
    Others,
    /// By number.
    Physical(u32),
    /// By the logical destination register.
    Logical(u32),
}

/// The request of a store beside the change of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// To send this.
    Send(Ipi),
    /// To tell the I/O APIC that this vector has ended.
    End(u8),
}

/// The change that a pending vector waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// None that the guest can make without an exit.
    Nothing,
    /// The guest takes interrupts.
    Interrupts,
    /// The task priority falls.
    Priority,
}

/// 256 bits, and which of their words are not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Vectors {
    words: [u32; 8],
    used: u8,
}

impl Vectors {
    const NONE: Self = Self {
        words: [0; 8],
        used: 0,
    };

    const fn place(vector: u8) -> (usize, u32) {
        ((vector >> 5) as usize, 1 << (vector & 31))
    }

    #[inline(always)]
    fn insert(&mut self, vector: u8) {
        let (index, bit) = Self::place(vector);
        if let Some(word) = self.words.get_mut(index) {
            *word |= bit;
            self.used |= 1_u8 << (vector >> 5);
        }
    }

    #[inline(always)]
    fn remove(&mut self, vector: u8) {
        let (index, bit) = Self::place(vector);
        if let Some(word) = self.words.get_mut(index) {
            *word &= !bit;
            if *word == 0 {
                self.used &= !(1_u8 << (vector >> 5));
            }
        }
    }

    fn has(&self, vector: u8) -> bool {
        let (index, bit) = Self::place(vector);
        self.words.get(index).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn highest(&self) -> Option<u8> {
        let index = self.used.checked_ilog2()?;
        let word = self.words.get(index as usize)?;
        Some((index << 5 | word.checked_ilog2()?) as u8)
    }

    fn word(&self, index: u32) -> u32 {
        self.words.get(index as usize).copied().unwrap_or(0)
    }
}

/// Returns the bits of a register of x2APIC that a store may set; another bit is a #GP (SDM 3A, 11.12.1).
const fn extended_bits(number: u32) -> u64 {
    let bits = match number {
        TASK_PRIORITY | SELF_COMMAND => 0xFF,
        END | ERROR => 0,
        SPURIOUS => 0x1FF,
        COMMAND => return COMMAND_BITS,
        DIVIDE => 0xB,
        LOCAL => LOCAL_BITS[0],
        0x33 | 0x34 => LOCAL_BITS[1],
        0x35 | 0x36 => LOCAL_BITS[3],
        0x37 => LOCAL_BITS[5],
        _ => u32::MAX,
    };
    bits as u64
}

/// The same as a table, for the registers that there are.
#[expect(
    clippy::indexing_slicing,
    reason = "computed by the compiler, which refuses an index that is not there"
)]
static EXTENDED_BITS: [u64; 64] = {
    let mut bits = [0; 64];
    let mut number = 0;
    while number < 64 {
        bits[number as usize] = extended_bits(number);
        number += 1;
    }
    bits
};

/// The local APIC of a vCPU.
#[derive(Clone, Debug)]
pub struct Lapic {
    id: u32,
    base: u64,
    /// True once the guest has used the registers in memory, or has written APIC_BASE.
    is_chosen: bool,
    /// By APIC_BASE and by the spurious vector's register.
    is_on: bool,
    task_priority: u8,
    spurious: u32,
    logical: u32,
    format: u32,
    request: Vectors,
    in_service: Vectors,
    level: Vectors,
    local: [u32; 6],
    command: u64,
    /// Errors since ESR was written last, and as it shows them.
    errors: [u32; 2],
    initial: u32,
    divide: u32,
    /// When the timer was started.
    started: u64,
    /// When the timer expires next, 0 if it does not.
    due: u64,
}

impl Lapic {
    /// Returns the state of processor `id` after a reset. The boot processor's state is as the firmware of a
    /// PC leaves it: it is on, and LINT0 lets the 8259 through.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        let is_first = id == 0;
        Self {
            id,
            is_chosen: false,
            base: ADDRESS | BASE_ENABLED | if is_first { BASE_BOOT } else { 0 },
            is_on: is_first,
            task_priority: 0,
            spurious: if is_first { 0x1FF } else { 0xFF },
            logical: 0,
            format: u32::MAX,
            request: Vectors::NONE,
            in_service: Vectors::NONE,
            level: Vectors::NONE,
            local: [
                MASKED,
                MASKED,
                MASKED,
                if is_first { LEVEL | 7 << 8 } else { MASKED },
                if is_first { LEVEL | 4 << 8 } else { MASKED },
                MASKED,
            ],
            command: 0,
            errors: [0; 2],
            initial: 0,
            divide: 0,
            started: 0,
            due: 0,
        }
    }

    /// Returns its number.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Returns APIC_BASE.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Writes APIC_BASE. Returns false, and changes nothing, if that is a #GP: another address, reserved
    /// bits, or a forbidden change of the mode (SDM 3A, 11.12.5). The bit of the boot processor is read-only.
    pub fn set_base(&mut self, value: u64) -> bool {
        let modes = BASE_ENABLED | BASE_EXTENDED;
        let value = value & !BASE_BOOT | self.base & BASE_BOOT;
        if value & !modes != self.base & !modes {
            return false;
        }
        match (self.base & modes, value & modes) {
            // x2APIC only from xAPIC, and from there only off.
            (_, BASE_EXTENDED) | (0, _) if value & BASE_EXTENDED != 0 => return false,
            (old, BASE_ENABLED) if old == modes => return false,
            _ => {}
        }
        self.base = value;
        self.is_on = self.is_enabled();
        self.is_chosen = true;
        true
    }

    /// Notes that the guest uses the registers in memory.
    pub const fn use_memory(&mut self) {
        self.is_chosen = true;
    }

    /// Tells whether the guest may use the registers of x2APIC. A guest whose first use of its APIC is such a
    /// register enters x2APIC mode by that: VMs began in that mode once, and programs for them do not write
    /// APIC_BASE. On a PC such an access is a #GP (SDM 3A, 11.12.2).
    pub const fn use_extended(&mut self) -> bool {
        if !self.is_chosen && self.base & BASE_ENABLED != 0 {
            self.is_chosen = true;
            self.base |= BASE_EXTENDED;
        }
        self.is_extended()
    }

    /// Tells whether it is in x2APIC mode.
    #[must_use]
    pub const fn is_extended(&self) -> bool {
        self.base & BASE_EXTENDED != 0
    }

    /// Returns the task priority, as CR8 shows it.
    #[must_use]
    pub const fn task_priority(&self) -> u8 {
        self.task_priority
    }

    /// Sets the task priority.
    pub const fn set_task_priority(&mut self, priority: u8) {
        self.task_priority = priority;
    }

    const fn is_enabled(&self) -> bool {
        self.base & BASE_ENABLED != 0 && self.spurious & SOFTWARE_ENABLED != 0
    }

    /// Makes a vector pending. Returns whether it can be delivered sooner or later.
    #[inline(always)]
    pub fn accept(&mut self, vector: u8, is_level: bool) -> bool {
        if vector < 16 || !self.is_on {
            return false;
        }
        self.request.insert(vector);
        if is_level {
            self.level.insert(vector);
        } else if self.level.used != 0 {
            self.level.remove(vector);
        }
        true
    }

    fn processor_priority(&self) -> u8 {
        let serviced = self.in_service.highest().unwrap_or(0) & 0xF0;
        if self.task_priority & 0xF0 >= serviced {
            self.task_priority
        } else {
            serviced
        }
    }

    /// Returns the vector that is pending with the highest priority, and whether the processor's priority
    /// lets it through.
    #[inline(always)]
    #[must_use]
    pub fn pending(&self) -> Option<(u8, bool)> {
        if !self.is_on {
            return None;
        }
        let vector = self.request.highest()?;
        // The processor's priority is the higher one of the two.
        let class = vector & 0xF0;
        let serviced = self.in_service.highest();
        let is_open =
            class > self.task_priority & 0xF0 && serviced.is_none_or(|serviced| class > serviced & 0xF0);
        Some((vector, is_open))
    }

    /// Returns the vector that the processor can take now.
    #[must_use]
    pub fn deliverable(&self) -> Option<u8> {
        self.pending()
            .filter(|(_, is_open)| *is_open)
            .map(|(vector, _)| vector)
    }

    /// Tells whether a vector that is pending and not let through only waits for a lower task priority.
    #[must_use]
    pub fn waits_for_task_priority(&self, vector: u8) -> bool {
        let serviced = self.in_service.highest().unwrap_or(0) & 0xF0;
        vector & 0xF0 > serviced
    }

    /// Tells whether its owner must look at it before the next entry, because register `number` was written:
    /// at its timer, or at a vector that is pending.
    #[must_use]
    pub fn must_be_looked_at(&self, number: u32) -> bool {
        let is_quiet = matches!(
            number,
            TASK_PRIORITY
                | END
                | LOGICAL_DESTINATION
                | DESTINATION_FORMAT
                | COMMAND
                | COMMAND_HIGH
                | SELF_COMMAND
        );
        !is_quiet || self.request.used != 0
    }

    /// Notes that the processor has taken the vector, which was pending. No other one can be delivered until
    /// this one ends, or the task priority falls, or another one comes.
    #[inline(always)]
    pub fn take(&mut self, vector: u8) {
        let (index, bit) = Vectors::place(vector);
        let mark = 1_u8 << (vector >> 5);
        let (request, serviced) = (&mut self.request, &mut self.in_service);
        if let (Some(from), Some(to)) = (request.words.get_mut(index), serviced.words.get_mut(index)) {
            *from ^= bit;
            if *from == 0 {
                request.used ^= mark;
            }
            *to |= bit;
            serviced.used |= mark;
        }
    }

    /// Tells whether a vector is pending, of any priority.
    #[inline(always)]
    #[must_use]
    pub const fn has_requests(&self) -> bool {
        self.request.used != 0
    }

    /// Takes the vector that the processor can take now, if there is one.
    #[inline(always)]
    pub fn take_deliverable(&mut self) -> Option<u8> {
        let (vector, is_open) = self.pending()?;
        if !is_open {
            return None;
        }
        self.take(vector);
        Some(vector)
    }

    /// Returns what the vector that is pending with the highest priority waits for, while the processor takes
    /// no interrupt.
    #[must_use]
    pub fn window(&self) -> Window {
        match self.pending() {
            Some((_, true)) => Window::Interrupts,
            Some((vector, false)) if self.waits_for_task_priority(vector) => Window::Priority,
            _ => Window::Nothing,
        }
    }

    /// Tells whether the 8259 reaches the processor through LINT0.
    #[must_use]
    pub const fn passes_external(&self) -> bool {
        if self.base & BASE_ENABLED == 0 {
            return true;
        }
        let [_, _, _, lint0, ..] = self.local;
        lint0 & MASKED == 0 && lint0 >> 8 & 7 == 7
    }

    /// Tells whether a message for `target` from `sender` is for this processor.
    #[must_use]
    pub fn is_for(&self, target: Target, sender: u32) -> bool {
        match target {
            Target::Own => self.id == sender,
            Target::All => true,
            Target::Others => self.id != sender,
            Target::Physical(id) if self.is_extended() => id == self.id || id == u32::MAX,
            Target::Physical(id) => id == self.id || id & 0xFF == 0xFF,
            Target::Logical(set) if self.is_extended() => {
                let own = self.logical_extended();
                set == u32::MAX || set >> 16 == own >> 16 && set & own & 0xFFFF != 0
            }
            Target::Logical(set) => {
                let own = self.logical >> 24;
                if self.format >> 28 == 0xF {
                    set & own != 0
                } else {
                    set >> 4 == own >> 4 && set & own & 0xF != 0
                }
            }
        }
    }

    const fn logical_extended(&self) -> u32 {
        (self.id >> 4) << 16 | 1 << (self.id & 0xF)
    }

    /// Returns the state of the same processor after INIT, which leaves the mode as it is (SDM 3A,
    /// 11.12.5.1).
    #[must_use]
    pub const fn after_init(&self) -> Self {
        Self {
            base: self.base,
            is_chosen: self.is_chosen,
            ..Self::new(self.id)
        }
    }

    /// Returns the register `number`. `None` for a number without a register: xAPIC notes an error instead.
    pub fn read(&mut self, number: u32, now: u64) -> Option<u64> {
        let word = match number {
            ID if self.is_extended() => self.id,
            ID => self.id << 24,
            VERSION => VERSION_VALUE,
            TASK_PRIORITY => self.task_priority.into(),
            PROCESSOR_PRIORITY => self.processor_priority().into(),
            LOGICAL_DESTINATION if self.is_extended() => self.logical_extended(),
            LOGICAL_DESTINATION => self.logical,
            DESTINATION_FORMAT if !self.is_extended() => self.format,
            SPURIOUS => self.spurious,
            IN_SERVICE..TRIGGER_MODE => self.in_service.word(number & 7),
            TRIGGER_MODE..REQUEST => self.level.word(number & 7),
            REQUEST..ERROR => self.request.word(number & 7),
            ERROR => self.errors[1],
            COMMAND if self.is_extended() => return Some(self.command),
            COMMAND => self.command as u32,
            COMMAND_HIGH if !self.is_extended() => (self.command >> 32) as u32,
            LOCAL..INITIAL_COUNT => self.local_vector(number),
            INITIAL_COUNT => self.initial,
            CURRENT_COUNT => self.count(now),
            DIVIDE => self.divide,
            END | ARBITRATION if !self.is_extended() => 0,
            _ => return self.is_missing().map(|_| 0),
        };
        Some(word.into())
    }

    /// Notes an access to a register that is not there. In x2APIC mode it is a #GP.
    const fn is_missing(&mut self) -> Option<Effect> {
        if self.is_extended() {
            return None;
        }
        self.errors[0] |= ERROR_ADDRESS;
        Some(Effect::Nothing)
    }

    fn local_vector(&self, number: u32) -> u32 {
        let index = number.wrapping_sub(LOCAL) as usize;
        self.local.get(index).copied().unwrap_or(MASKED)
    }

    /// Writes the register `number`; `None` if there is none, or not such a value.
    pub fn write(&mut self, number: u32, value: u64, now: u64) -> Option<Effect> {
        let word = value as u32;
        // After the table there is no register, which is found below.
        let bits = EXTENDED_BITS.get(number as usize & 63);
        if self.is_extended() && value & !bits.unwrap_or(&0) != 0 {
            return None;
        }
        match number {
            TASK_PRIORITY => self.task_priority = word as u8,
            END => return Some(self.end()),
            COMMAND if self.is_extended() => {
                self.command = value;
                return self.send();
            }
            SELF_COMMAND if self.is_extended() => {
                self.accept(word as u8, false);
            }
            _ => return self.write_rarely(number, word, now),
        }
        Some(Effect::Nothing)
    }

    /// Writes any other register.
    #[inline(never)]
    fn write_rarely(&mut self, number: u32, word: u32, now: u64) -> Option<Effect> {
        match number {
            LOGICAL_DESTINATION if !self.is_extended() => self.logical = word & 0xFF00_0000,
            DESTINATION_FORMAT if !self.is_extended() => self.format = word | 0x0FFF_FFFF,
            SPURIOUS => self.set_spurious(word),
            ERROR => self.errors = [0, self.errors[0]],
            COMMAND => {
                self.command = self.command & !u64::from(u32::MAX) | u64::from(word & !(1 << 12));
                return self.send();
            }
            COMMAND_HIGH if !self.is_extended() => {
                self.command = self.command & u64::from(u32::MAX) | u64::from(word) << 32;
            }
            LOCAL..INITIAL_COUNT => self.set_local(number, word, now),
            INITIAL_COUNT => {
                self.advance(now);
                self.initial = word;
                self.start(now);
            }
            DIVIDE => {
                self.advance(now);
                self.divide = word & 0xB;
                self.start(now);
            }
            // A register that can only be read: x2APIC refuses the store.
            ID | VERSION | ARBITRATION | PROCESSOR_PRIORITY | IN_SERVICE..ERROR | CURRENT_COUNT
                if !self.is_extended() => {}
            _ => return self.is_missing(),
        }
        Some(Effect::Nothing)
    }

    fn set_spurious(&mut self, word: u32) {
        self.spurious = word & 0x1FF;
        self.is_on = self.is_enabled();
        if word & SOFTWARE_ENABLED == 0 {
            for entry in &mut self.local {
                *entry |= MASKED;
            }
        }
    }

    fn set_local(&mut self, number: u32, word: u32, now: u64) {
        // An expiry that came while the vector was masked is over.
        self.advance(now);
        let is_off = self.spurious & SOFTWARE_ENABLED == 0;
        let masked = if is_off { MASKED } else { 0 };
        let before = self.mode();
        let index = number.wrapping_sub(LOCAL) as usize;
        if let (Some(entry), Some(bits)) = (self.local.get_mut(index), LOCAL_BITS.get(index)) {
            *entry = word & bits & !READ_ONLY | masked;
        }
        if number == LOCAL && before != self.mode() {
            self.due = 0;
            if self.mode() != BY_DEADLINE {
                self.start(now);
            }
        }
    }

    fn end(&mut self) -> Effect {
        let Some(vector) = self.in_service.highest() else {
            return Effect::Nothing;
        };
        self.in_service.remove(vector);
        if self.level.has(vector) {
            Effect::End(vector)
        } else {
            Effect::Nothing
        }
    }

    /// Sends what the interrupt command says. Vectors for the processor itself and for one by its number,
    /// which are frequent, come first.
    #[inline(always)]
    fn send(&mut self) -> Option<Effect> {
        let low = self.command as u32;
        let destination = low & (DELIVERY | SHORTHAND | LOGICAL);
        if low & 0xF0 != 0 && destination == OWN {
            self.accept(low as u8, false);
            return Some(Effect::Nothing);
        }
        if low & 0xF0 != 0 && destination == 0 {
            return Some(Effect::Send(Ipi {
                vector: low as u8,
                delivery: Delivery::Fixed,
                target: Target::Physical(self.destination()),
            }));
        }
        self.send_any()
    }

    /// Returns the destination of the interrupt command.
    const fn destination(&self) -> u32 {
        let high = (self.command >> 32) as u32;
        if self.is_extended() { high } else { high >> 24 }
    }

    /// Sends what the interrupt command says.
    #[inline(never)]
    fn send_any(&mut self) -> Option<Effect> {
        let low = self.command as u32;
        let delivery = Delivery::decode(low >> 8);
        // INIT with level de-assert does nothing on processors since the Pentium 4 (SDM 3A, 11.6.1).
        if delivery == Delivery::Init && low & 1 << 14 == 0 && low & 1 << 15 != 0 {
            return Some(Effect::Nothing);
        }
        if matches!(delivery, Delivery::Fixed | Delivery::Lowest) && low & 0xF0 == 0 {
            self.errors[0] |= ERROR_SENT;
            return Some(Effect::Nothing);
        }
        let destination = self.destination();
        let target = match (low >> 18 & 3, low & LOGICAL != 0) {
            (1, _) => Target::Own,
            (2, _) => Target::All,
            (3, _) => Target::Others,
            (_, true) => Target::Logical(destination),
            (_, false) => Target::Physical(destination),
        };
        Some(Effect::Send(Ipi {
            vector: low as u8,
            delivery,
            target,
        }))
    }

    const fn mode(&self) -> u32 {
        let [timer, ..] = self.local;
        timer >> 17 & 3
    }

    /// Returns the bits by which the counter is shifted (SDM 3A, figure 11-10).
    const fn shift(&self) -> u32 {
        let field = self.divide & 3 | self.divide >> 1 & 4;
        (field.wrapping_add(1)) & 7
    }

    const fn period(&self) -> u64 {
        (self.initial as u64) << self.shift()
    }

    fn start(&mut self, now: u64) {
        if self.mode() == BY_DEADLINE {
            return;
        }
        self.started = now;
        self.due = match self.period() {
            0 => 0,
            period => now.saturating_add(period),
        };
    }

    fn count(&self, now: u64) -> u32 {
        if self.mode() == BY_DEADLINE {
            return 0;
        }
        let passed = now.saturating_sub(self.started);
        let passed = if self.mode() == PERIODIC {
            passed.checked_rem(self.period()).unwrap_or(0)
        } else {
            passed
        };
        (self.period().saturating_sub(passed) >> self.shift()) as u32
    }

    /// Returns TSC_DEADLINE: 0 from the time itself on, whether it interrupts or not.
    #[must_use]
    pub const fn deadline(&self, now: u64) -> u64 {
        if self.mode() == BY_DEADLINE && self.due > now {
            self.due
        } else {
            0
        }
    }

    /// Writes TSC_DEADLINE.
    #[inline]
    pub fn set_deadline(&mut self, deadline: u64, now: u64) {
        if self.mode() == BY_DEADLINE {
            self.advance(now);
            self.due = deadline;
        }
    }

    /// Returns when the timer interrupts next.
    #[must_use]
    pub const fn expiry(&self) -> Option<u64> {
        let [timer, ..] = self.local;
        if self.due == 0 || timer & MASKED != 0 {
            None
        } else {
            Some(self.due)
        }
    }

    /// Lets the timer expire if it is time. Periods that were missed are one interrupt, and so are short ones
    /// that begin before the program has had `SHORTEST`.
    #[inline]
    pub fn advance(&mut self, now: u64) {
        if self.due != 0 && self.due <= now {
            self.expire(now);
        }
    }

    fn expire(&mut self, now: u64) {
        if self.mode() == PERIODIC {
            return self.expire_periodic(now);
        }
        self.due = 0;
        self.accept_timer();
    }

    #[inline(never)]
    fn expire_periodic(&mut self, now: u64) {
        self.due = self.next_period(now);
        self.accept_timer();
    }

    #[inline(always)]
    fn accept_timer(&mut self) {
        let [timer, ..] = self.local;
        if timer & MASKED == 0 {
            self.accept(timer as u8, false);
        }
    }

    /// Returns when a periodic timer that expires now expires next, 0 if it does not.
    fn next_period(&self, now: u64) -> u64 {
        let period = self.period();
        let pause = if period < SHORTEST { SHORTEST } else { 0 };
        let passed = now.saturating_sub(self.started).saturating_add(pause);
        let Some(over) = passed.checked_rem(period) else {
            return 0;
        };
        let next = passed.saturating_sub(over).saturating_add(period);
        self.started.saturating_add(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on() -> Lapic {
        let mut apic = Lapic::new(1);
        assert!(apic.set_base(apic.base() | BASE_EXTENDED));
        apic.write(SPURIOUS, 0x1FF, 0);
        apic
    }

    #[test]
    fn vectors_come_by_priority_and_end_in_order() {
        let mut apic = on();
        assert!(apic.accept(0x31, false) && apic.accept(0x52, true));
        assert_eq!(apic.deliverable(), Some(0x52));
        apic.take(0x52);
        assert_eq!(apic.deliverable(), None, "a lower class waits");
        assert!(apic.accept(0x60, false));
        assert_eq!(apic.deliverable(), Some(0x60));
        apic.take(0x60);
        assert_eq!(apic.write(END, 0, 0), Some(Effect::Nothing));
        assert_eq!(apic.write(END, 0, 0), Some(Effect::End(0x52)));
        assert_eq!(apic.deliverable(), Some(0x31));
        apic.set_task_priority(0x30);
        assert_eq!(apic.deliverable(), None);
        assert!(apic.waits_for_task_priority(0x31));
    }

    #[test]
    fn nothing_is_accepted_while_it_is_off() {
        let mut apic = Lapic::new(1);
        assert!(!apic.accept(0x31, false));
        apic.write(SPURIOUS, 0x1FF, 0);
        assert!(!apic.accept(0x0F, false), "an exception's vector");
        assert!(apic.accept(0x31, false));
    }

    #[test]
    fn commands_name_their_targets() {
        let mut apic = on();
        let ipi = |vector, delivery, target| {
            Some(Effect::Send(Ipi {
                vector,
                delivery,
                target,
            }))
        };
        let sent = apic.write(COMMAND, 3 << 32 | 0x4031, 0);
        assert_eq!(sent, ipi(0x31, Delivery::Fixed, Target::Physical(3)));
        let sent = apic.write(COMMAND, 2 << 32 | 0x4608, 0);
        assert_eq!(sent, ipi(8, Delivery::Startup, Target::Physical(2)));
        assert_eq!(apic.write(COMMAND, 0x8500, 0), Some(Effect::Nothing), "de-assert");
        assert_eq!(apic.write(COMMAND, 0x4001, 0), Some(Effect::Nothing), "vector 1");
        assert_eq!(apic.write(ID, 0, 0), None);
        assert_eq!(apic.read(COMMAND_HIGH, 0), None);
        let mut old = Lapic::new(0);
        old.write(COMMAND_HIGH, 0x0200_0000, 0);
        let sent = old.write(COMMAND, 0x4031, 0);
        assert_eq!(sent, ipi(0x31, Delivery::Fixed, Target::Physical(2)));
    }

    #[test]
    fn a_vector_for_oneself_is_pending_at_once() {
        for (register, value) in [(SELF_COMMAND, 0x77), (COMMAND, 1 << 18 | 0x4077)] {
            let (mut apic, mut twin) = (on(), on());
            // A level that was left by an earlier one.
            for apic in [&mut apic, &mut twin] {
                apic.accept(0x77, true);
            }
            assert_eq!(apic.write(register, value, 0), Some(Effect::Nothing));
            assert!(twin.accept(0x77, false));
            assert_eq!((apic.pending(), apic.level), (Some((0x77, true)), twin.level));
            assert!(apic.must_be_looked_at(register));
        }
        let sent = on().write(COMMAND, 1 << 18 | 0x4177, 0);
        let ipi = Ipi {
            vector: 0x77,
            delivery: Delivery::Lowest,
            target: Target::Own,
        };
        assert_eq!(sent, Some(Effect::Send(ipi)));
    }

    #[test]
    fn targets_are_met_by_number_and_by_set() {
        let apic = on();
        assert!(apic.is_for(Target::Physical(1), 0) && !apic.is_for(Target::Physical(2), 0));
        assert!(apic.is_for(Target::Logical(2), 0) && !apic.is_for(Target::Logical(1), 0));
        assert!(apic.is_for(Target::Others, 0) && !apic.is_for(Target::Others, 1));
        let mut old = Lapic::new(2);
        old.write(LOGICAL_DESTINATION, 0x0400_0000, 0);
        assert!(old.is_for(Target::Logical(6), 0) && !old.is_for(Target::Logical(3), 0));
        assert!(old.is_for(Target::Physical(0xFF), 0));
    }

    #[test]
    fn the_timer_counts_once_or_for_ever() {
        let mut apic = on();
        apic.write(LOCAL, 0x40, 0);
        apic.write(DIVIDE, 0, 0);
        apic.write(INITIAL_COUNT, 100, 1000);
        assert_eq!(apic.expiry(), Some(1200), "divided by two");
        assert_eq!(apic.read(CURRENT_COUNT, 1100), Some(50));
        apic.advance(1199);
        assert_eq!(apic.deliverable(), None);
        apic.advance(1200);
        assert_eq!((apic.deliverable(), apic.expiry()), (Some(0x40), None));
        apic.take(0x40);
        apic.write(END, 0, 0);
        apic.write(LOCAL, 0x2_0041, 2000);
        apic.write(INITIAL_COUNT, 10_000, 2000);
        apic.advance(67_000);
        assert_eq!((apic.deliverable(), apic.expiry()), (Some(0x41), Some(82_000)));
    }

    #[test]
    fn a_short_period_leaves_time_between_its_interrupts() {
        let mut apic = on();
        apic.write(LOCAL, 0x2_0041, 0);
        apic.write(DIVIDE, 0xB, 0);
        apic.write(INITIAL_COUNT, 300, 1000);
        assert_eq!(apic.expiry(), Some(1300));
        for now in [1300, 20_000, 700_001] {
            apic.advance(now);
            let next = apic.expiry().unwrap();
            assert!((now + SHORTEST..now + SHORTEST + 301).contains(&next), "{next}");
            assert_eq!((next - 1000) % 300, 0, "where a period ends");
        }
        assert_eq!(apic.read(CURRENT_COUNT, 1000 + 300 * 7 + 1), Some(299));
        apic.write(INITIAL_COUNT, 1, 2000);
        apic.advance(2001);
        assert_eq!(apic.expiry(), Some(2002 + SHORTEST));
    }

    #[test]
    fn a_time_that_came_while_the_vector_was_masked_is_over() {
        let mut apic = on();
        apic.write(LOCAL, 0x1_0040, 0);
        apic.write(DIVIDE, 0xB, 0);
        apic.write(INITIAL_COUNT, 1000, 0);
        apic.write(LOCAL, 0x40, 1000);
        assert_eq!((apic.expiry(), apic.deliverable()), (None, None));
        apic.write(LOCAL, 0x5_0040, 2000);
        apic.set_deadline(3000, 2000);
        assert_eq!((apic.deadline(2999), apic.deadline(3000)), (3000, 0));
        apic.write(LOCAL, 0x4_0040, 3000);
        assert_eq!((apic.expiry(), apic.deliverable()), (None, None));
    }

    #[test]
    fn bits_and_registers_that_are_not_there_are_refused() {
        let mut apic = on();
        for (register, value) in [
            (END, 5),
            (TASK_PRIORITY, 0x100),
            (SPURIOUS, 1 << 12),
            (ERROR, 1),
            (COMMAND, 1 << 13),
            (LOCAL, 1 << 19),
            (0x37, 0x700),
            (DIVIDE, 4),
            (INITIAL_COUNT, 1 << 32),
            (SELF_COMMAND, 0x140),
            (VERSION, 0),
            (IN_SERVICE, 0),
            (CURRENT_COUNT, 0),
            (ARBITRATION, 0),
            (0x40, 0),
        ] {
            assert_eq!(apic.write(register, value, 0), None, "{register:#x}");
        }
        for register in [END, SELF_COMMAND, ARBITRATION, DESTINATION_FORMAT, 0x40] {
            assert_eq!(apic.read(register, 0), None, "{register:#x}");
        }
        let mut old = Lapic::new(0);
        for register in [VERSION, END, ARBITRATION, CURRENT_COUNT] {
            assert!(old.read(register, 0).is_some() && old.write(register, 0, 0).is_some());
        }
        old.write(ERROR, 0, 0);
        assert_eq!(old.read(ERROR, 0), Some(0));
        assert_eq!(old.read(0x04, 0), Some(0));
        old.write(ERROR, 0, 0);
        assert_eq!(old.read(ERROR, 0), Some(ERROR_ADDRESS.into()));
        assert_eq!(old.write(SELF_COMMAND, 0x52, 0), Some(Effect::Nothing));
        old.write(ERROR, 0, 0);
        assert_eq!(old.read(ERROR, 0), Some(ERROR_ADDRESS.into()));
    }

    #[test]
    fn the_deadline_is_a_time_of_its_own() {
        let mut apic = on();
        apic.set_deadline(5000, 0);
        assert_eq!(apic.deadline(0), 0, "not in this mode");
        apic.write(LOCAL, 0x4_0042, 0);
        apic.set_deadline(5000, 0);
        assert_eq!((apic.deadline(0), apic.expiry()), (5000, Some(5000)));
        apic.advance(5000);
        assert_eq!((apic.deadline(5000), apic.deliverable()), (0, Some(0x42)));
        apic.write(LOCAL, 0x40, 6000);
        assert_eq!(apic.expiry(), None);
    }

    #[test]
    fn the_mode_changes_only_as_the_manual_allows() {
        let mut apic = Lapic::new(0);
        assert_eq!(apic.base(), 0xFEE0_0900);
        assert!(apic.set_base(0xFEE0_0D00));
        assert!(!apic.set_base(0xFEE0_0900), "not back to xAPIC");
        assert!(!apic.set_base(0xFEE0_0500), "not extended and off");
        assert!(apic.after_init().is_extended(), "INIT leaves the mode");
        assert!(apic.set_base(0xFEE0_0100));
        assert!(!apic.set_base(0xFEE0_0D00), "not from off to x2APIC");
        assert!(apic.set_base(0xFEE0_0900));
        assert!(!apic.set_base(0xFED0_0900));
        assert!(
            apic.set_base(0xFEE0_0800),
            "that it is the boot processor cannot be changed"
        );
        assert_eq!(apic.base(), 0xFEE0_0900);
    }

    #[test]
    fn the_first_use_chooses_the_mode() {
        let mut apic = Lapic::new(0);
        assert!(!apic.is_extended() && apic.use_extended() && apic.is_extended());
        assert_eq!(apic.base() & BASE_EXTENDED, BASE_EXTENDED);
        let mut apic = Lapic::new(0);
        apic.use_memory();
        assert!(!apic.use_extended(), "memory was used first");
        let mut apic = Lapic::new(0);
        assert!(apic.set_base(apic.base()));
        assert!(!apic.use_extended(), "APIC_BASE was written first");
    }
}
