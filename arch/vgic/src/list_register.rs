// SPDX-License-Identifier: Apache-2.0
//! The format of a list register (IHI 0069, `ICH_LR<n>_EL2`).

/// One list register: what the virtual CPU interface knows of one interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ListRegister(pub u64);

const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;
const HARDWARE: u64 = 1 << 61;
const GROUP1: u64 = 1 << 60;
const PRIORITY_SHIFT: u32 = 48;
const PHYSICAL_SHIFT: u32 = 32;
const PHYSICAL_MASK: u64 = 0x1FFF;
const NOTICE_END: u64 = 1 << 41;
/// Not linked: the sender of a software-generated interrupt of a GICv2, one bit a vCPU. A GICv3 ignores it.
const SENDER_SHIFT: u32 = 32;

/// `GICH_LR` (IHI 0048B, 5.3.10): the same on a GICv2, in 32 bits.
const V2_LINE: u32 = 0x3FF;
const V2_NUMBER_SHIFT: u32 = 10;
const V2_NOTICE_END: u32 = 1 << 19;
const V2_PRIORITY_SHIFT: u32 = 23;
const V2_PENDING: u32 = 1 << 28;
const V2_ACTIVE: u32 = 1 << 29;
const V2_GROUP1: u32 = 1 << 30;
const V2_HARDWARE: u32 = 1 << 31;

impl ListRegister {
    /// Invalid: free for use.
    pub const EMPTY: Self = Self(0);

    /// Returns a pending interrupt.
    #[must_use]
    pub const fn pending(line: u32, priority: u8, group1: bool) -> Self {
        let group = if group1 { GROUP1 } else { 0 };
        Self(PENDING | group | (priority as u64) << PRIORITY_SHIFT | line as u64)
    }

    /// Returns a pending, linked interrupt: its deactivation by the guest deactivates the physical interrupt.
    #[must_use]
    pub const fn linked_to(self, physical: u32) -> Self {
        Self(self.0 | HARDWARE | (physical as u64 & PHYSICAL_MASK) << PHYSICAL_SHIFT)
    }

    /// Returns this interrupt with or without a maintenance interrupt at its end. Not for linked ones.
    #[must_use]
    pub const fn with_end_notice(self, on: bool) -> Self {
        if on {
            Self(self.0 | NOTICE_END)
        } else {
            Self(self.0 & !NOTICE_END)
        }
    }

    /// Returns this interrupt as a software-generated one of a GICv2 with this sender (one bit a vCPU).
    #[must_use]
    pub const fn sent_by(self, sender: u8) -> Self {
        Self(self.0 | (sender as u64) << SENDER_SHIFT)
    }

    /// Returns the sender, one bit a vCPU; 0 if that is not known.
    #[must_use]
    pub const fn sender(self) -> u8 {
        if self.0 & HARDWARE != 0 {
            return 0;
        }
        (self.0 >> SENDER_SHIFT) as u8
    }

    /// Returns this interrupt in the format of `GICH_LR` of a GICv2.
    #[inline]
    #[must_use]
    pub const fn version2(self) -> u32 {
        // Pending and active are neighbours in both formats, and so are group and hardware. The bit for the
        // notice is as far from the number in both.
        let state = (self.0 >> PENDING.trailing_zeros()) as u32 & 3;
        let kind = (self.0 >> GROUP1.trailing_zeros()) as u32 & 3;
        let value = self.line() & V2_LINE
            | (self.priority() as u32 >> 3) << V2_PRIORITY_SHIFT
            | state << V2_PENDING.trailing_zeros()
            | kind << V2_GROUP1.trailing_zeros();
        let number = (self.0 >> PHYSICAL_SHIFT) as u32;
        if self.0 & HARDWARE != 0 {
            return value | (number & V2_LINE) << V2_NUMBER_SHIFT;
        }
        let notice = number << V2_NUMBER_SHIFT & V2_NOTICE_END;
        value | notice | (self.sender().trailing_zeros() & 7) << V2_NUMBER_SHIFT
    }

    /// Returns the interrupt that `GICH_LR` of a GICv2 holds.
    #[must_use]
    pub const fn from_version2(value: u32) -> Self {
        let line = value & V2_LINE;
        let number = value >> V2_NUMBER_SHIFT & V2_LINE;
        let priority = ((value >> V2_PRIORITY_SHIFT & 0x1F) << 3) as u64;
        let mut this = Self(priority << PRIORITY_SHIFT | line as u64)
            .with_pending(value & V2_PENDING != 0)
            .with_active(value & V2_ACTIVE != 0);
        if value & V2_GROUP1 != 0 {
            this.0 |= GROUP1;
        }
        if value & V2_HARDWARE != 0 {
            return this.linked_to(number);
        }
        if line < 16 {
            this = this.sent_by(1 << (number & 7));
        }
        this.with_end_notice(value & V2_NOTICE_END != 0)
    }

    /// Returns this interrupt, pending or not.
    #[must_use]
    pub const fn with_pending(self, on: bool) -> Self {
        if on {
            Self(self.0 | PENDING)
        } else {
            Self(self.0 & !PENDING)
        }
    }

    /// Returns this interrupt, active or not.
    #[must_use]
    pub const fn with_active(self, on: bool) -> Self {
        if on {
            Self(self.0 | ACTIVE)
        } else {
            Self(self.0 & !ACTIVE)
        }
    }

    /// Virtual interrupt line.
    #[must_use]
    pub const fn line(self) -> u32 {
        self.0 as u32
    }

    /// Linked physical line, if linked.
    #[must_use]
    pub const fn physical(self) -> Option<u32> {
        if self.0 & HARDWARE == 0 {
            return None;
        }
        Some(((self.0 >> PHYSICAL_SHIFT) & PHYSICAL_MASK) as u32)
    }

    /// Priority; smaller is more urgent.
    #[must_use]
    pub const fn priority(self) -> u8 {
        (self.0 >> PRIORITY_SHIFT) as u8
    }

    /// Tells whether it belongs to group 1 (virtual IRQ). Otherwise it belongs to group 0 (virtual FIQ).
    #[must_use]
    pub const fn is_group1(self) -> bool {
        self.0 & GROUP1 != 0
    }

    /// Tells whether it is pending (perhaps active as well).
    #[must_use]
    pub const fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Tells whether it is active (perhaps pending as well).
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    /// Tells whether it is the private `line`, pending, not active, and its end is not to be noticed. (If it
    /// is linked, its physical line is a private one, whose number does not reach the bit for the notice.)
    #[inline(always)]
    #[must_use]
    pub const fn is_plain(self, line: u32) -> bool {
        self.0 & (PENDING | ACTIVE | NOTICE_END | 0xFFFF_FFFF) == PENDING | line as u64
    }

    /// Tells whether its end makes a maintenance interrupt.
    #[must_use]
    pub const fn notices_end(self) -> bool {
        self.0 & (HARDWARE | NOTICE_END) == NOTICE_END
    }

    /// Tells whether it is neither pending nor active.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 & (PENDING | ACTIVE) == 0
    }
}
