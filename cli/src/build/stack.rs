// SPDX-License-Identifier: Apache-2.0
//! The stack of a class binary with a policy of the user's own.
//!
//! The stack of a class is large enough for the code of this repository, which its tests hold. A policy of
//! the user's own is on the stack with its state, and its calls come on top of the calls of the hypervisor.
//! So a class binary with such a policy is measured after it is built, by a program of the repository.

use crate::build::artifacts::{Workspace, run};
use crate::build::own_policy::OwnCrate;
use crate::problem::Problem;
use crate::ui::progress::Progress;
use std::env;
use std::path::Path;
use std::process::Command;

/// The package of the program that measures.
const PACKAGE: &str = "bulkhead-stack";

impl Workspace {
    /// Checks that the stack of the class binary in `file` holds the policy that is built in.
    ///
    /// # Errors
    /// It does not, with the functions that take most.
    pub(super) fn check_stack(
        &self,
        own: &OwnCrate,
        file: &Path,
        progress: &Progress,
    ) -> Result<(), Problem> {
        let target = self.target().join("stack");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(self.root())
            .args(["build", "--package", PACKAGE, "--target-dir"])
            .arg(&target);
        progress.step("measuring the stack with the policy", || {
            run(&mut cargo)?;
            let program = target.join("debug").join(PACKAGE);
            let mut measure = Command::new(&program);
            let said = measure.arg(self.root()).arg(file).output();
            let said = said.map_err(Problem::io(program.display()))?;
            if said.status.success() {
                return Ok(());
            }
            let why = String::from_utf8_lossy(&said.stderr);
            Err(Problem::new(format!(
                "the policy `{}` is too large for the hypervisor's stack: {}",
                own.name(),
                why.trim_end()
            ))
            .remedy("make the state and the local variables of the policy smaller"))
        })
    }
}
