// SPDX-License-Identifier: Apache-2.0
//! Frames, and the board's LAN9118 if the hypervisor drives it.
//!
//! The line of the chip is the hypervisor's, but it is open only while the kernel admits one of the partitions that frames could be
//! for: nobody who is more urgent than all of them is ever interrupted by the network (`irq`).

use crate::machine::Machine;
use crate::window::Loan;
use bulkhead_arch_api::{Exit, FrameWords, HostPhys, Line, Network, Place, Received, VcpuId, Vcpus, Window};
use bulkhead_arch_support::{Mmio, physical};
use bulkhead_drivers::lan9118::Lan9118;
use bulkhead_image::Image;
use bulkhead_image::layout::{CONTROLLER_LAN9118, ROLE_NETWORK};

/// The board's interface.
pub(crate) struct Uplink {
    chip: Lan9118,
    line: Line,
}

impl Uplink {
    /// The one that a checked image gives the hypervisor.
    pub(crate) fn of(image: &Image<'_>) -> Option<Self> {
        let record = image.controllers().iter().find(|record| {
            record.role.get() == ROLE_NETWORK && record.compatible.get() == CONTROLLER_LAN9118
        })?;
        let ([base, ..], [size, ..], [line, ..]) = (record.base, record.size, record.lines);
        // SAFETY: the image is checked: these are the registers of the chip, and nobody else has them.
        let registers = unsafe { Mmio::new(base.get() as usize, size.get() as usize) };
        Some(Self {
            chip: Lan9118::new(registers),
            line: Line(line.get()),
        })
    }
}

/// Reads a word of a frame.
#[inline]
fn load(at: u64) -> u32 {
    // SAFETY: memory for frames (the kernel's promise), which is RAM of the hypervisor without any Rust reference.
    unsafe { physical::read_word32(at as usize) }
}

/// Writes a word of a frame.
#[inline]
fn store(at: u64, value: u32) {
    // SAFETY: as for `load`.
    unsafe { physical::write_word32(at as usize, value) }
}

/// All memory for frames.
pub(crate) struct Words;

impl FrameWords for Words {
    #[inline(always)]
    fn word(&mut self, at: HostPhys) -> u32 {
        load(at.0)
    }

    #[inline(always)]
    fn set_word(&mut self, at: HostPhys, value: u32) {
        store(at.0, value);
    }
}

/// The addresses of `words` words.
fn places(first: HostPhys, words: u32) -> impl Iterator<Item = u64> {
    (0..words).map(move |index| first.0 + u64::from(index << 2))
}

impl Network for Machine {
    const HAS_NETWORK: bool = true;

    fn run_beside(&mut self, vcpu: VcpuId, place: &Place, window: &mut impl Window) -> Exit {
        // SAFETY: the window is borrowed to the end of this function, where the loan has ended.
        self.loan = unsafe { Loan::of(place, window) };
        let exit = self.run(vcpu);
        self.loan = Loan::NOTHING;
        exit
    }

    fn frame_words(&mut self) -> impl FrameWords {
        Words
    }

    fn copy_frame(&mut self, from: HostPhys, to: HostPhys, words: u32) {
        for (source, target) in places(from, words).zip(places(to, words)) {
            store(target, load(source));
        }
    }

    fn network_line(&self) -> Option<Line> {
        self.uplink.as_ref().map(|uplink| uplink.line)
    }

    fn open_network(&mut self, partitions: u32) {
        if let Some(uplink) = &mut self.uplink {
            uplink.chip.start();
            self.irq.share(uplink.line.0, partitions);
        }
    }

    fn next_frame(&mut self) -> Option<Received> {
        let (bytes, head) = self.uplink.as_mut()?.chip.oldest()?;
        Some(Received { bytes, head })
    }

    fn take_frame(&mut self, to: HostPhys, words: u32) {
        if let Some(uplink) = &mut self.uplink {
            places(to, words).for_each(|place| store(place, uplink.chip.word()));
        }
    }

    fn end_frame(&mut self) {
        if let Some(uplink) = &mut self.uplink {
            uplink.chip.end();
        }
    }

    fn send_frame(&mut self, from: HostPhys, bytes: u32) -> bool {
        let Some(uplink) = &mut self.uplink else {
            return false;
        };
        let has_room = uplink.chip.begin(bytes);
        if has_room {
            places(from, bytes.div_ceil(4)).for_each(|place| uplink.chip.put(load(place)));
        }
        has_room
    }
}
