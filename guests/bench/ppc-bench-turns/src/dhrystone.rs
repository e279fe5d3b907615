// SPDX-License-Identifier: Apache-2.0
//! A synthetic program of the mix of statements that Weicker published as Dhrystone 2: assignments, calls,
//! records, arrays, strings, enumerations; written anew by the published description. A *round* is one pass
//! of its main loop.

use core::hint::black_box;

/// The enumeration of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    One,
    Two,
    Three,
    Four,
    Five,
}

type Text = [u8; 30];

/// A record. The other one is found by its place.
#[derive(Clone, Copy)]
struct Record {
    next: usize,
    identity: Identity,
    number: i32,
    text: Text,
}

/// Global variables.
pub struct State {
    records: [Record; 2],
    number: i32,
    is_true: bool,
    first: u8,
    second: u8,
    array: [i32; 50],
    table: [[i32; 50]; 50],
}

const fn text(third: &[u8; 4]) -> Text {
    let mut text = *b"DHRYSTONE PROGRAM, 1'ST STRING";
    let mut at = 0;
    while at < third.len() {
        text[19 + at] = third[at];
        at += 1;
    }
    text
}

impl State {
    /// The variables before the first round.
    pub const START: Self = Self {
        records: [
            Record {
                next: 1,
                identity: Identity::Three,
                number: 40,
                text: *b"DHRYSTONE PROGRAM, SOME STRING",
            },
            Record {
                next: 0,
                identity: Identity::One,
                number: 0,
                text: *b"DHRYSTONE PROGRAM, SOME STRING",
            },
        ],
        number: 0,
        is_true: false,
        first: 0,
        second: 0,
        array: [0; 50],
        table: [[0; 50]; 50],
    };

    /// Does a round.
    pub fn round(&mut self, number: i32) {
        self.set_first();
        self.set_second();
        let mut one = 2;
        let two = 3;
        let own = black_box(text(b"1'ST"));
        let other = black_box(text(b"2'ND"));
        let mut identity = Identity::Two;
        self.is_true = !is_greater(&own, &other, &mut self.number);
        let mut three = 0;
        while one < two {
            three = 5 * one - two;
            three = sum(one, two, three);
            one += 1;
        }
        self.fill(one, three);
        self.copy_record();
        let mut letter = b'A';
        while letter <= self.second {
            if identity == of_letters(letter, b'C') {
                identity = self.next(Identity::One);
                self.number = number;
            }
            letter += 1;
        }
        let mut two = two * one;
        one = two / black_box(three);
        two = 7 * (two - three) - one;
        self.records[1].number = self.count(one, two);
    }

    /// Tells whether the variables are as they must be after any round.
    pub fn is_right(&self) -> bool {
        let [first, second] = &self.records;
        self.number == 5 && first.number == 5 && second.text == first.text && self.array[9] == self.array[8]
    }

    #[inline(never)]
    fn set_first(&mut self) {
        self.is_true |= self.first == b'A';
        self.second = b'B';
    }

    #[inline(never)]
    fn set_second(&mut self) {
        self.first = b'A';
        self.is_true = false;
    }

    #[inline(never)]
    fn fill(&mut self, one: i32, two: i32) {
        let place = (one + 5) as usize;
        self.array[place] = two;
        self.array[place + 1] = self.array[place];
        self.array[place + 30] = place as i32;
        for column in place..=place + 1 {
            self.table[place][column] = place as i32;
        }
        self.table[place][place - 1] += 1;
        self.table[place + 20][place] = self.array[place];
        self.number = 5;
    }

    #[inline(never)]
    fn copy_record(&mut self) {
        let next = black_box(self.records[0].next);
        self.records[next] = self.records[0];
        self.records[0].number = 5;
        self.records[next].number = self.records[0].number;
        self.records[next].next = self.records[0].next;
        if self.records[next].identity == Identity::One {
            self.records[next].number = 6;
            self.records[next].identity = self.next(self.records[0].identity);
            self.records[next].number = sum(self.records[next].number, 10, 0);
        } else {
            self.records[0] = self.records[next];
        }
    }

    #[inline(never)]
    fn next(&self, identity: Identity) -> Identity {
        match identity {
            Identity::One => Identity::One,
            Identity::Two if self.number > 100 => Identity::One,
            Identity::Two => Identity::Four,
            Identity::Three => Identity::Two,
            Identity::Four => Identity::Five,
            Identity::Five => Identity::Three,
        }
    }

    #[inline(never)]
    fn count(&self, one: i32, two: i32) -> i32 {
        let mut left = one + 10;
        while self.first == b'A' && left > two {
            left -= 1;
        }
        left - self.number
    }
}

#[inline(never)]
fn sum(one: i32, two: i32, three: i32) -> i32 {
    black_box(two + one + 2 + three - three)
}

#[inline(never)]
fn of_letters(one: u8, two: u8) -> Identity {
    if black_box(one) == two {
        Identity::Two
    } else {
        Identity::One
    }
}

#[inline(never)]
fn is_greater(one: &Text, two: &Text, number: &mut i32) -> bool {
    let mut place = 2;
    while place <= 2 {
        if of_letters(one[place], two[place + 1]) == Identity::Two {
            return false;
        }
        place += 1;
    }
    let is_greater = one > two;
    if is_greater {
        *number = place as i32 + 7;
    }
    is_greater
}
