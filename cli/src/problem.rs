// SPDX-License-Identifier: Apache-2.0
//! A problem of the host tool, as a user is told it.
//!
//! The whole tool has one type of problem: a problem is shown once, at the end, and no code branches on its
//! kind. Only the exit code differs.

use serde_json::Value;
use std::fmt;
use std::io::{self, ErrorKind};

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
    /// Ended by SIGHUP: 128 and the number of the signal, as shells have it.
    HangUp = 129,
    /// Ended by SIGINT.
    Interrupt = 130,
    /// Ended by SIGTERM.
    Terminate = 143,
}

/// The problem and its remedies.
#[derive(Debug)]
pub struct Problem {
    what: String,
    remedy: Option<String>,
    code: Code,
    /// The findings that the text shows, complete as it is; `None`: the text is a message.
    findings: Option<Vec<Value>>,
}

impl Problem {
    /// Makes a problem of the message `what`.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: None,
            code: Code::Fault,
            findings: None,
        }
    }

    /// Makes the problem of a user who asked for something that makes no sense.
    pub fn usage(what: impl Into<String>) -> Self {
        Self {
            code: Code::Usage,
            ..Self::new(what)
        }
    }

    /// Makes the problem of a manifest whose findings are rendered already, for people and for programs.
    pub fn reported(text: impl Into<String>, findings: Vec<Value>) -> Self {
        Self {
            findings: Some(findings),
            ..Self::new(text)
        }
    }

    /// Adds a remedy: the text says what the user can do about the problem.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }

    /// Returns a function for `map_err`: the system refused something to do with `subject`.
    pub fn io(subject: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let problem = Self::new(format!("{subject}: {}", words(&error)));
            match remedy_of(error.kind()) {
                Some(remedy) => problem.remedy(remedy),
                None => problem,
            }
        }
    }

    /// Returns what is wrong, in one sentence or a few.
    #[must_use]
    pub fn message(&self) -> &str {
        match self.findings {
            Some(_) => "the manifest is refused",
            None => &self.what,
        }
    }

    /// Returns the remedy.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Returns the findings about the manifest, as [`crate::json::findings`] has them.
    #[must_use]
    pub fn findings(&self) -> &[Value] {
        self.findings.as_deref().unwrap_or_default()
    }

    /// Returns the exit code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }
}

/// Returns the words of the operating system, without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Returns the remedy for what the operating system refuses, if there is a general one.
fn remedy_of(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "look at the path: the file has to be there, and for a new one its folder",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "choose a place where you may read and write, or change its permissions"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            "choose another path: there is something else at this one"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room on the disk, or choose another one",
        _ => return None,
    })
}

impl Problem {
    /// Returns the text for standard error.
    #[must_use]
    pub fn display(&self) -> String {
        if self.findings.is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_has_words_and_a_remedy() {
        // The numbers of Linux: no such file, no permission, a read-only disk.
        for (number, remedy) in [
            (2, "look at the path"),
            (13, "where you may"),
            (30, "where you may"),
        ] {
            let problem = Problem::io("/proc/x")(io::Error::from_raw_os_error(number)).to_string();
            assert!(problem.starts_with("/proc/x: "), "{problem}");
            assert!(
                problem.contains("\nhelp: ") && problem.contains(remedy),
                "{problem}"
            );
            assert!(!problem.contains("os error"), "{problem}");
        }
    }
}
