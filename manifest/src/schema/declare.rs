// SPDX-License-Identifier: Apache-2.0
//! The two forms of declarations: tables, and choices of words.

/// Declares tables of the format, each as a structure with one field per key.
///
/// ```text
/// tables! {
///     /// A stretch of the board's address space.
///     pub(crate) Stretch = "a window" {
///         /// first address
///         base "base": Option<Placed<Address>>, required;
///         /// bytes
///         size "size": Given<Size>, default "4K";
///     }
/// }
/// ```
///
/// The documentation is the text of the reference. A key is `required`, `optional`, `default LITERAL` with
/// the value as a manifest would give it, or `otherwise "WORDS"` if its absence means more than a value.
///
/// After the name may follow, in this order: `derive(...)`; `[...]` with facts that are no keys
/// ([`Head`](super::form::Head) returns them); `with { ... }` with fields that are filled in later;
/// `by "NOUN"`, the word for the names of such tables; `completed_by FUNCTION`, which adds keys that are
/// declared elsewhere.
macro_rules! tables {
    ($(
        $(#[doc = $doc:literal])+
        $visibility:vis $name:ident
        $(derive($($derive:ident),+))?
        $([$($fact:ident),+])?
        $(with { $($(#[doc = $extra_doc:literal])+ $extra:ident: $extra_type:ty,)+ })?
        $(by $noun:literal)?
        $(completed_by $complete:path)?
        = $what:literal {
            $(
                $(#[doc = $key_doc:literal])+
                $field:ident $key:literal: $type:ty, $need:ident $(($absence:tt))?;
            )*
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug $(, $($derive),+)?)]
        $visibility struct $name {
            $($(
                #[doc = concat!("The table's ", stringify!($fact), ".")]
                pub(crate) $fact: $crate::schema::declare::fact!($fact),
            )+)?
            $($($(#[doc = $extra_doc])+ pub $extra: $extra_type,)+)?
            $($(#[doc = $key_doc])+ pub $field: $type,)*
        }

        impl $crate::schema::form::Declared for $name {
            const SCHEMA: &'static $crate::schema::TableSchema = &$crate::schema::TableSchema {
                what: $what,
                doc: concat!($($doc),+).trim_ascii(),
                own: &[$($crate::schema::Key {
                    name: $key,
                    doc: concat!($($key_doc),+).trim_ascii(),
                    kind: <$type as $crate::schema::form::Field>::KIND,
                    need: $crate::schema::declare::need!($need $($absence)?),
                }),*],
                complete: $crate::schema::declare::complete!($($complete)?),
            };
            const NAMED_BY: &'static str = $crate::schema::declare::noun!($($noun)?);

            fn read(head: &$crate::schema::form::Head<'_>) -> Self {
                let _ = head;
                Self {
                    $($($fact: head.$fact(),)+)?
                    $($($extra: Default::default(),)+)?
                    $($field: $crate::schema::form::Field::read(
                        head.table.entry($key),
                        $crate::schema::declare::need!($need $($absence)?).literal(),
                    ),)*
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                let table = $crate::value::Table::default();
                let place = $crate::diagnostic::Place::default();
                let head = $crate::schema::form::Head { table: &table, place, key: None };
                <Self as $crate::schema::form::Declared>::read(&head)
            }
        }

        impl $crate::schema::form::Form for $name {
            const KIND: $crate::schema::ValueKind =
                $crate::schema::ValueKind::Table(<Self as $crate::schema::form::Declared>::SCHEMA);

            fn read(value: &$crate::value::Value) -> Option<Self> {
                Some(<Self as $crate::schema::form::Declared>::read(&$crate::schema::form::Head {
                    table: value.table()?,
                    place: value.place,
                    key: None,
                }))
            }
        }
    )+};
}

/// Gives the type of a fact of a table that is no key.
macro_rules! fact {
    (name) => { $crate::schema::form::Placed<String> };
    (keys) => { Vec<$crate::schema::form::Placed<String>> };
    (place) => { $crate::diagnostic::Place };
    (start) => { $crate::diagnostic::Place };
}

/// The meaning of the absence of a key.
macro_rules! need {
    (required) => {
        $crate::schema::Need::Required
    };
    (optional) => {
        $crate::schema::Need::Optional
    };
    (default $literal:tt) => {
        $crate::schema::Need::Default(stringify!($literal))
    };
    (otherwise $words:tt) => {
        $crate::schema::Need::Otherwise($words)
    };
}

/// The function that completes the keys of a table.
macro_rules! complete {
    () => {
        <[$crate::schema::Key]>::to_vec
    };
    ($function:path) => {
        $function
    };
}

/// The noun for names.
macro_rules! noun {
    () => {
        "name"
    };
    ($noun:literal) => {
        $noun
    };
}

/// Declares how the values of a type are written: as one of some words.
macro_rules! words {
    ($type:ty { $($(#[doc = $doc:literal])+ $word:literal => $value:expr,)+ }) => {
        impl $crate::schema::form::Words for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),+];
        }

        impl $crate::schema::form::Form for $type {
            const KIND: $crate::schema::ValueKind =
                $crate::schema::ValueKind::Choice(&[$(($word, concat!($($doc),+).trim_ascii())),+]);

            fn read(value: &$crate::value::Value) -> Option<Self> {
                let words = <Self as $crate::schema::form::Words>::WORDS;
                let given = value.text()?;
                words.iter().find(|(word, _)| *word == given).map(|(_, value)| *value)
            }
        }
    };
}

/// Declares a type of which each value is a word. The first one is the default.
macro_rules! choices {
    (
        $(#[doc = $doc:literal])+
        $visibility:vis $name:ident { $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[doc = $word_doc])+ $variant,)+
        }

        impl Default for $name {
            fn default() -> Self {
                let [(_, first), ..] = <Self as $crate::schema::form::Words>::WORDS else {
                    unreachable!("a choice has a word")
                };
                *first
            }
        }

        $crate::schema::declare::words! {
            $name { $($(#[doc = $word_doc])+ $word => Self::$variant,)+ }
        }
    };
}

pub(crate) use {choices, complete, fact, need, noun, tables, words};
