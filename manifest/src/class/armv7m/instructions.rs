// SPDX-License-Identifier: Apache-2.0
//! The instructions of the class: T32 as Armv7-M has it.

use super::reread::reread;
use super::{mask_words, rewrite};
use crate::in_place::section::{Instructions, Refusals, Rewritten, Section};
use crate::payload::Stretch;

/// T32 instructions.
pub(super) struct T32;

impl Instructions for T32 {
    fn replace(
        &self,
        section: &Section<'_>,
        bytes: &mut [u8],
        rewritten: &mut Rewritten,
        refusals: &mut Refusals,
    ) {
        let before = rewritten.sites.len();
        rewrite::rewrite(section, bytes, rewritten, refusals);
        let sites = rewritten.sites.get(before..).unwrap_or(&[]);
        let verified = rewrite::verify(section, bytes, sites).and_then(|()| reread(section, bytes, sites));
        if let Err(why) = verified {
            refusals.push(why);
        }
    }

    fn lookalikes(&self, address: u32, bytes: &[u8]) -> Vec<u32> {
        rewrite::replaced_lookalikes(address, bytes).collect()
    }

    fn use_mask_words(
        &self,
        words: u32,
        code: &mut Vec<Stretch>,
        rewritten: &mut Rewritten,
    ) -> Result<(), String> {
        mask_words::bridge(words, code, rewritten)
    }

    fn debugger_call(&self, address: u32, bytes: &[u8]) -> Option<u32> {
        rewrite::debugger_call(address, bytes)
    }
}
