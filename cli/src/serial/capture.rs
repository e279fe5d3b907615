// SPDX-License-Identifier: Apache-2.0
//! The bytes of a serial line that another program kept, as lines of text. Records of the log become the text
//! that they stand for.

use crate::serial::consoles::{ConsoleLine, Consoles, Control, Observer};
use crate::serial::framing::VirtualTime;
use bulkhead_abi::framing::RS;

/// A line of a console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLine {
    /// The console's name.
    pub console: String,
    /// The time of the tag before the line's last bytes.
    pub time: VirtualTime,
    /// The text that a person would see on the line.
    pub text: String,
}

#[derive(Default)]
struct Collector(Vec<KeptLine>);

impl Observer for Collector {
    fn line(&mut self, line: ConsoleLine<'_>, _: &mut Control) {
        self.0.push(KeptLine {
            console: line.console.to_owned(),
            time: line.time,
            text: line.text.to_owned(),
        });
    }
}

/// The bytes so far.
#[derive(Debug, Default)]
pub struct Capture {
    consoles: Consoles,
    is_tagged: bool,
}

impl Capture {
    /// Takes more bytes. Returns the lines that are complete now, or `None` if there was no tag yet: the
    /// bytes are no capture of a line then, so far.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Vec<KeptLine>> {
        self.is_tagged |= bytes.contains(&RS);
        self.is_tagged.then(|| {
            let mut collector = Collector::default();
            let mut control = Control::default();
            self.consoles.feed(bytes, &mut collector, &mut control);
            collector.0
        })
    }

    /// Ends the lines that are unfinished.
    pub fn finish(&mut self) -> Vec<KeptLine> {
        let mut collector = Collector::default();
        self.consoles.finish(&mut collector, &mut Control::default());
        collector.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::framing::US;
    use bulkhead_abi::log::line::Line;
    use bulkhead_abi::log::record::Written;
    use bulkhead_abi::log::{Entry, Kind};

    #[test]
    fn a_capture_has_the_lines_of_records_and_of_consoles() {
        let mut partition = Entry::new(Kind::Partition, 2000);
        partition.put_bytes(b"control");
        let mut state = Entry::new(Kind::State, 3_000_000);
        state.detail = 3;
        let (mut written, mut piece) = (Written::new(), Line::new());
        let mut line = Vec::new();
        for entry in [partition, state] {
            line.push(RS);
            while !written.piece(&entry, &mut piece) {
                line.extend(piece.as_bytes());
            }
            line.extend(piece.as_bytes());
        }
        assert_eq!(line.last(), Some(&US));
        line.extend(b"\x1e[0.004000] control: \x1fhello\r\n");
        let mut capture = Capture::default();
        let mut lines = Vec::new();
        for bytes in line.split_inclusive(|byte| *byte == b'\n') {
            lines.extend(capture.feed(bytes).unwrap());
        }
        let shown: Vec<String> = lines
            .iter()
            .map(|line| format!("{} {}: {}", line.time, line.console, line.text))
            .collect();
        assert_eq!(
            shown,
            [
                "0.000002 bulkhead: partition control: VM, vCPUs on pCPU",
                "0.003000 bulkhead: partition control: running",
                "0.004000 control: hello"
            ]
        );
        assert_eq!(Capture::default().feed(b"[0.1] bulkhead: x\n"), None);
    }
}
