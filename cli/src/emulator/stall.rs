// SPDX-License-Identifier: Apache-2.0
//! The words for a guest that takes exception after exception and gets nowhere, and for the clock of the
//! board that such a guest holds up. The watch of a run finds it.

/// A guest that gets nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The effect on the board.
    pub kind: Kind,
    /// The pCPUs on which a vCPU runs: all that may be to blame.
    pub running: Vec<Running>,
}

/// The effect of a guest that gets nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No instruction is counted, so the board's clock stands still.
    Stands,
    /// Few instructions are counted: so many in a second of the emulator's computing.
    Creeps(u64),
    /// None on the clock: the guest alone is stuck.
    Stuck,
}

/// A vCPU that has a pCPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The pCPU.
    pub pcpu: usize,
    /// The name of the partition.
    pub partition: String,
    /// The address of the instruction, if the emulator tells it.
    pub pc: Option<u64>,
    /// The reason why there is no instruction, if there is none.
    pub nothing: Option<Nothing>,
    /// The meaning of the address, if it is one of a table of vectors.
    pub vector: Option<String>,
    /// The link register.
    pub link: Option<u64>,
}

/// Why there is no instruction at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nothing {
    /// There are zeros, which are an undefined instruction.
    Zeros,
    /// The guest has mapped nothing there.
    Unmapped,
}

impl Stall {
    /// Tells whether the board's clock stood still or crept, as the end of a sentence.
    #[must_use]
    pub fn clock(&self) -> &'static str {
        match self.kind {
            Kind::Stands => ", and the board's clock stood still",
            Kind::Creeps(_) => ", and the board's clock crept",
            Kind::Stuck => "",
        }
    }

    /// Returns the warning. The function `place` describes an address of a partition.
    #[must_use]
    pub fn text(&self, mut place: impl FnMut(&str, u64) -> Option<String>) -> String {
        let who: Vec<String> = self
            .running
            .iter()
            .map(|running| running.words(&mut place))
            .collect();
        let who = match who.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            several => format!(": {}; one of them is to blame", several.join(", ")),
        };
        let details: String = self
            .running
            .iter()
            .filter_map(|running| running.details(&mut place))
            .collect();
        let (beginning, why, remedy) = self.kind.words();
        format!("warning: {beginning}{who}{details}\n  {why}\n  {remedy}")
    }
}

impl Kind {
    /// Returns the beginning of the warning, its reason and the remedy.
    fn words(self) -> (String, &'static str, &'static str) {
        match self {
            Self::Stands => (
                "the board's clock stands still, and so do all partitions".to_owned(),
                "an instruction that faults again and again is never counted, such as the first one of a vector \
                 table that the guest has not mapped",
                "this run counts instructions (docs/bugs.md): correct the guest's vectors, or let the clock and \
                 the neighbours go on with --realtime",
            ),
            Self::Creeps(rate) => (
                format!(
                    "the board's clock creeps, and so do all partitions: the emulator counts {}.{} million \
                     instructions in a second of its computing, where a program that gets on has 20 million and \
                     more",
                    rate / 1_000_000,
                    rate % 1_000_000 / 100_000
                ),
                "the program has stayed at a few addresses, most likely in a loop of exceptions (or of TLBI, or \
                 of YIELD): one takes the emulator as long as a hundred instructions, and hardly any are between",
                "this run counts instructions (docs/bugs.md): correct what faults there, or its handler, or let \
                 the clock and the neighbours go on with --realtime",
            ),
            Self::Stuck => (
                "a program takes one exception after the other, and gets nowhere".to_owned(),
                "an exception at a vector leads to the same vector again, and the registers of the first one are \
                 lost; if the clock of the run creeps, too, --realtime lets the neighbours go on",
                "correct the vectors; a breakpoint there, with `bulkhead run --gdb`, stops at the first one",
            ),
        }
    }
}

impl Running {
    fn words(&self, place: &mut impl FnMut(&str, u64) -> Option<String>) -> String {
        let Self {
            pcpu, partition, pc, ..
        } = self;
        let at = pc.map_or(String::new(), |pc| {
            format!(" at {}", described(partition, pc, place))
        });
        format!("pCPU {pcpu} runs `{partition}`{at}")
    }

    /// Says what is at the address instead of an instruction, and what the link register leads to.
    fn details(&self, place: &mut impl FnMut(&str, u64) -> Option<String>) -> Option<String> {
        let nothing = match self.nothing? {
            Nothing::Zeros => "there are zeros, no instruction",
            Nothing::Unmapped => "nothing is mapped there",
        };
        let vector = self
            .vector
            .as_ref()
            .map_or(String::new(), |vector| format!(": it is {vector}"));
        let link = self.link.filter(|link| *link != 0).map_or(String::new(), |link| {
            format!(
                "; its link register was {} before the first exception",
                described(&self.partition, link, place)
            )
        });
        Some(format!("\n  `{}`: {nothing}{vector}{link}", self.partition))
    }
}

fn described(partition: &str, address: u64, place: &mut impl FnMut(&str, u64) -> Option<String>) -> String {
    match place(partition, address) {
        // A place has its address.
        Some(place) => place,
        None => format!("{address:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(pcpu: usize) -> Running {
        Running {
            pcpu,
            partition: "f".to_owned(),
            pc: Some(0x200),
            ..Running::default()
        }
    }

    fn stall(kind: Kind, running: Vec<Running>) -> Stall {
        Stall { kind, running }
    }

    #[test]
    fn the_warning_says_who_where_and_what_to_do() {
        for kind in [Kind::Stands, Kind::Creeps(2_460_000)] {
            let text = stall(kind, vec![running(0)]).text(|_, _| Some("0x200: vectors".to_owned()));
            assert!(text.contains("pCPU 0 runs `f` at 0x200: vectors\n"), "{text}");
            assert!(
                text.contains("--realtime") && !text.contains("one of them"),
                "{text}"
            );
        }
        let text = stall(Kind::Stands, vec![running(0), running(1)]).text(|_, _| None);
        assert!(
            text.contains("pCPU 1 runs `f` at 0x200; one of them is to blame"),
            "{text}"
        );
        assert!(
            stall(Kind::Stands, vec![])
                .text(|_, _| None)
                .contains("all partitions\n")
        );
        let text = stall(Kind::Creeps(2_460_000), vec![]).text(|_, _| None);
        assert!(text.contains("2.4 million"), "{text}");
    }

    #[test]
    fn a_guest_whose_vectors_hold_zeros_is_told_so() {
        let stuck = Running {
            nothing: Some(Nothing::Zeros),
            vector: Some("the vector at offset 0x200".to_owned()),
            link: Some(0x18),
            ..running(0)
        };
        let text =
            stall(Kind::Stuck, vec![stuck]).text(|_, at| (at == 0x18).then(|| "0x18: work".to_owned()));
        assert!(
            text.contains(
                "zeros, no instruction: it is the vector at offset 0x200; its link register was 0x18: work"
            ),
            "{text}"
        );
        assert!(!text.contains("clock stands"), "{text}");
    }
}
