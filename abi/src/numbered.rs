// SPDX-License-Identifier: Apache-2.0
//! Enumerations whose variants have a number in a table or a register, and a name for people.

/// Defines an enumeration with a number and a name for each variant, and the ways back.
#[macro_export]
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$vmeta])* $variant = $number),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// Their names, each with a line feed after it. As a list of texts the names would be three times
            /// as long.
            pub const NAMES: &'static str = concat!($($text, "\n"),*);

            /// Returns the value with this number.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns its name in manifests, logs and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }
        }
    };
}
