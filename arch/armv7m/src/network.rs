// SPDX-License-Identifier: Apache-2.0
//! Memory for frames, and the virtual interface that is at hand while its vCPU runs.

use crate::machine::Machine;
use crate::window::Loan;
use bulkhead_arch_api::{Exit, FrameWords, Frames, HostPhys, VcpuId, Vcpus, VirtualDevice, Window};
use bulkhead_arch_support::physical;

/// Reads a word of a frame.
#[inline]
fn load(at: u64) -> u32 {
    // SAFETY: memory for frames (the kernel's promise), which is RAM of the hypervisor without any Rust
    // reference.
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

/// Returns the addresses of `words` words.
fn places(first: HostPhys, words: u32) -> impl Iterator<Item = u64> {
    (0..words).map(move |index| first.0 + u64::from(index << 2))
}

impl Frames for Machine {
    fn run_beside(&mut self, vcpu: VcpuId, place: &VirtualDevice, window: &mut impl Window) -> Exit {
        // SAFETY: the window is borrowed to the end of this function, and the loan has ended there.
        self.loan = unsafe { Loan::of(place, window) };
        let exit = self.run(vcpu);
        self.loan = Loan::NOTHING;
        exit
    }

    fn frame_words(&mut self) -> impl FrameWords + use<> {
        Words
    }

    fn copy_frame(&mut self, from: HostPhys, to: HostPhys, words: u32) {
        for (source, target) in places(from, words).zip(places(to, words)) {
            store(target, load(source));
        }
    }
}
