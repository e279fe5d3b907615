// SPDX-License-Identifier: Apache-2.0
//! Contents that no mapping symbol speaks for.
//!
//! Compilers and assemblers leave out the mapping symbol of a section that holds nothing but data. GNU ld
//! makes up for that when it puts such a section among code. LLD does not: of
//! `.text : { *(.vectors) *(.text*) *(.rodata*) }` the table before the first function has no symbol that
//! speaks for it, and the constants after the last function seem to go on with its code. So functions that
//! have a size say where code ends, and variables that have a size say what is data. The rest stays *untold*:
//! it may be either.

use std::ops::Range;

use super::section::Contents;

/// Names in the symbols of a section, besides the kinds of contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// First address, and number of bytes; 0 if the symbol does not say.
    pub functions: Vec<(u32, u32)>,
    pub variables: Vec<(u32, u32)>,
}

impl Names {
    /// Moves every address by the distance from a section's linked address to its physical address.
    pub fn moved(mut self, by: u32) -> Self {
        for (start, _) in self.functions.iter_mut().chain(&mut self.variables) {
            *start = start.wrapping_add(by);
        }
        self
    }
}

/// Returns the mapping symbols `map` of a section (ascending), together with what the names say in between.
/// `section` has its addresses. A section without any mapping symbol stays so.
pub(crate) fn tell(map: &[(u32, Contents)], names: Names, section: Range<u32>) -> Vec<(u32, Contents)> {
    let names = Sorted::new(names);
    let mut told = Vec::with_capacity(map.len());
    if let Some((first, _)) = map.first() {
        names.split(section.start, *first, &mut told);
    }
    let stops = map
        .iter()
        .skip(1)
        .map(|(address, _)| *address)
        .chain([section.end]);
    for ((start, contents), stop) in map.iter().zip(stops) {
        told.push((*start, *contents));
        // In a damaged file a mapping symbol may be outside of the section.
        if *contents == Contents::Thumb && *start < stop {
            names.split(names.end_of_code(*start, stop), stop, &mut told);
        }
    }
    told
}

/// Names in ascending order.
struct Sorted {
    functions: Vec<(u32, u32)>,
    /// The farthest end of each function and those before it.
    ends: Vec<u32>,
    variables: Vec<(u32, u32)>,
}

impl Sorted {
    fn new(
        Names {
            mut functions,
            mut variables,
        }: Names,
    ) -> Self {
        functions.sort_unstable();
        variables.retain(|(_, size)| *size > 0);
        variables.sort_unstable();
        let ends = functions
            .iter()
            .scan(0, |far: &mut u32, (start, size)| {
                *far = (*far).max(start.saturating_add(*size));
                Some(*far)
            })
            .collect();
        Self {
            functions,
            ends,
            variables,
        }
    }

    /// Returns the variables that begin from `start` on and before `stop`.
    fn variables(&self, start: u32, stop: u32) -> &[(u32, u32)] {
        let at = |address| self.variables.partition_point(|(first, _)| *first < address);
        self.variables.get(at(start)..at(stop)).unwrap_or(&[])
    }

    /// Returns the end of the code that begins at `start` by its mapping symbol; this end is at most `stop`.
    fn end_of_code(&self, start: u32, stop: u32) -> u32 {
        let at = |address| self.functions.partition_point(|(first, _)| *first < address);
        let behind = at(stop);
        let sized = behind.checked_sub(1).and_then(|last| self.ends.get(last));
        let sized = sized.copied().unwrap_or(0).clamp(start, stop);
        // A function in assembly that does not say how long it is.
        let open = self.functions.get(at(sized)..behind).and_then(<[_]>::first);
        let unknown = open.map_or(sized, |(first, _)| *first);
        if (sized == start || open.is_some()) && self.variables(unknown, stop).is_empty() {
            stop
        } else {
            unknown
        }
    }

    /// Describes the contents between two addresses at which no symbol says that there is code.
    fn split(&self, from: u32, to: u32, told: &mut Vec<(u32, Contents)>) {
        let mut at = from;
        for (start, size) in self.variables(from, to) {
            if *start > at {
                told.push((at, Contents::Untold));
            }
            told.push((*start, Contents::Data));
            at = at.max(start.saturating_add(*size).min(to));
        }
        if at < to {
            told.push((at, Contents::Untold));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Contents::{Data, Thumb, Untold};
    use super::*;

    fn told(
        map: &[(u32, Contents)],
        functions: &[(u32, u32)],
        variables: &[(u32, u32)],
    ) -> Vec<(u32, Contents)> {
        let names = Names {
            functions: functions.to_vec(),
            variables: variables.to_vec(),
        };
        tell(map, names, 0x100..0x200)
    }

    #[test]
    fn a_function_says_where_code_ends_and_a_variable_what_is_data() {
        let code = [(0x100, Thumb)];
        // Strings, a table, strings, and a table at the very end.
        let rest = [(0x150, 0x10), (0x1f0, 0x10)];
        let expected = [
            (0x100, Thumb),
            (0x140, Untold),
            (0x150, Data),
            (0x160, Untold),
            (0x1f0, Data),
        ];
        assert_eq!(told(&code, &[(0x120, 0x20), (0x100, 0x10)], &rest), expected);
        assert_eq!(told(&code, &[(0x100, 0x100)], &[]), code, "nothing is left");
        assert_eq!(
            told(&code, &[(0x100, 0x900)], &rest),
            code,
            "a function is believed"
        );
        let nested = [(0x100, Thumb), (0x110, Data), (0x118, Data), (0x130, Untold)];
        assert_eq!(
            told(&code, &[(0x100, 0x10)], &[(0x110, 0x20), (0x118, 4)]),
            nested
        );
    }

    #[test]
    fn what_is_behind_literals_within_a_function_is_code() {
        let map = [(0x100, Thumb), (0x120, Data), (0x128, Thumb)];
        let whole = [(0x100, 0x60)];
        let expected = [
            (0x100, Thumb),
            (0x120, Data),
            (0x128, Thumb),
            (0x160, Data),
            (0x170, Untold),
        ];
        assert_eq!(told(&map, &whole, &[(0x160, 0x10)]), expected);
    }

    #[test]
    fn assembly_without_sizes_is_code_unless_a_variable_is_behind_it() {
        let code = [(0x100, Thumb)];
        assert_eq!(told(&code, &[], &[]), code, "not even a name");
        assert_eq!(told(&code, &[(0x100, 0x10), (0x110, 0)], &[]), code);
        // A label within a function is no function of its own.
        let tail = [(0x100, Thumb), (0x140, Untold)];
        assert_eq!(told(&code, &[(0x100, 0x40), (0x110, 0)], &[]), tail);
        let open = [(0x100, Thumb), (0x110, Untold), (0x180, Data)];
        assert_eq!(told(&code, &[(0x100, 0x10), (0x110, 0)], &[(0x180, 0x80)]), open);
        let nameless = [(0x100, Thumb), (0x100, Untold), (0x180, Data)];
        assert_eq!(told(&code, &[], &[(0x180, 0x80)]), nameless);
    }

    #[test]
    fn a_table_before_the_first_mapping_symbol_is_data_if_it_is_a_variable() {
        let map = [(0x140, Thumb)];
        assert_eq!(told(&map, &[], &[(0x100, 0x40)]), [(0x100, Data), (0x140, Thumb)]);
        assert_eq!(told(&map, &[], &[]), [(0x100, Untold), (0x140, Thumb)]);
        assert_eq!(told(&[], &[(0x100, 4)], &[(0x120, 4)]), [], "stripped");
    }
}
