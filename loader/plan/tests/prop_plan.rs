// SPDX-License-Identifier: Apache-2.0
//! A plan that is written is read, and no bytes make the reader fail or name memory that is not there.
#![cfg(feature = "writer")]

use bulkhead_loader_plan::{Piece, Plan, PlanError, Range, write};
use proptest::prelude::*;

fn piece(base: u64, bytes: &[u8]) -> Piece<'_> {
    let length = bytes.len() as u64 + 64;
    Piece {
        memory: Range {
            base: base * 16,
            length,
        },
        bytes,
    }
}

proptest! {
    #[test]
    fn a_plan_is_read_as_it_was_written(
        contents in prop::collection::vec((1_u64..1 << 40, prop::collection::vec(any::<u8>(), 0..200)), 1..6),
        ranges in prop::collection::vec((any::<u32>(), any::<u32>()), 0..6),
    ) {
        let pieces: Vec<Piece<'_>> = contents.iter().map(|(base, bytes)| piece(*base, bytes)).collect();
        let ranges: Vec<Range> =
            ranges.iter().map(|(base, length)| Range { base: (*base).into(), length: (*length).into() }).collect();
        let entry = pieces[0].memory.base + 4;
        let plan = write(entry, &pieces, &ranges);
        let read = Plan::read(&plan).expect("the plan is right");
        prop_assert_eq!(read.entry(), entry);
        prop_assert!(read.ranges().eq(ranges));
        for (read, written) in read.pieces().zip(&pieces) {
            prop_assert_eq!(read.memory.base, written.memory.base);
            prop_assert!(read.memory.length >= written.memory.length);
            prop_assert!(read.bytes.starts_with(written.bytes));
            prop_assert!(read.bytes.len() < written.bytes.len() + 16);
        }
    }

    #[test]
    fn changed_bytes_never_reach_beyond_the_plan(at in 0_usize..200, with in any::<u8>(), cut in 0_usize..300) {
        let bytes = [7; 100];
        let mut plan = write(64, &[piece(4, &bytes), piece(100, &bytes[..30])], &[]);
        if let Some(byte) = plan.get_mut(at) {
            *byte = with;
        }
        plan.truncate(cut);
        if let Ok(plan) = Plan::read(&plan) {
            for piece in plan.pieces() {
                prop_assert!(piece.bytes.len() as u64 <= piece.memory.length);
                prop_assert!(piece.memory.base.checked_add(piece.memory.length).is_some());
            }
        }
    }
}

#[test]
fn each_refusal_has_its_reason() {
    let right = write(64, &[piece(4, &[1; 40])], &[]);
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut plan = right.clone();
        change(&mut plan);
        Plan::read(&plan).err()
    };
    assert_eq!(refused(&|_| ()), None);
    assert_eq!(refused(&|plan| plan[0] = 0), Some(PlanError::NotAPlan));
    assert_eq!(refused(&|plan| plan[15] = 2), Some(PlanError::NotAPlan));
    assert_eq!(refused(&|plan| plan.truncate(40)), Some(PlanError::Short));
    assert_eq!(
        refused(&|plan| plan.truncate(plan.len() - 1)),
        Some(PlanError::Short)
    );
    // The entry is in no piece; no piece; more records than a plan may have; a place that is not aligned.
    assert_eq!(refused(&|plan| plan[16] = 1), Some(PlanError::Record));
    assert_eq!(refused(&|plan| plan[24] = 0), Some(PlanError::Record));
    assert_eq!(refused(&|plan| plan[30] = 1), Some(PlanError::Record));
    assert_eq!(refused(&|plan| plan[32] = 1), Some(PlanError::Record));
}
