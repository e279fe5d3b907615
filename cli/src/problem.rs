// SPDX-License-Identifier: Apache-2.0
//! What can go wrong in the host tool, as a user is told it.
//!
//! One type for the whole tool: a problem is shown once, at the end, and nobody branches on its
//! kind; only the exit code differs.

use std::fmt;
use std::io;

/// Exit codes of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done.
    Done = 0,
    /// The system or the manifest is at fault.
    Fault = 1,
    /// Wrong usage.
    Usage = 2,
    /// Time ran out.
    Timeout = 124,
}

/// What went wrong and what helps.
#[derive(Debug)]
pub struct Problem {
    what: String,
    remedy: Option<String>,
    code: Code,
    /// The text is complete as it is: a rendered report.
    reported: bool,
}

impl Problem {
    /// Something went wrong.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: None,
            code: Code::Fault,
            reported: false,
        }
    }

    /// The user asked for something that makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self {
            code: Code::Usage,
            ..Self::new(what)
        }
    }

    /// The findings about a manifest, rendered already.
    pub fn reported(text: impl Into<String>) -> Self {
        Self {
            reported: true,
            ..Self::new(text)
        }
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// For `map_err`: the system refused something to do with `subject`.
    pub fn io(subject: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(format!("{subject}: {error}"))
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }
}

impl Problem {
    /// The text for standard error.
    #[must_use]
    pub fn display(&self) -> String {
        if self.reported {
            self.what.trim_end().to_owned()
        } else {
            format!("error: {self}")
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.what)?;
        match &self.remedy {
            Some(remedy) => write!(out, "\nhelp: {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}
