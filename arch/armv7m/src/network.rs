// SPDX-License-Identifier: Apache-2.0
//! Frames that are copied, and the virtual interface that is at hand while its vCPU runs.

use crate::machine::Machine;
use crate::window::Loan;
use crate::words::{Words, load, store};
use bulkhead_arch_api::{Exit, FrameWords, Frames, HostPhys, VcpuId, Vcpus, VirtualDevice, Window};

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
