// SPDX-License-Identifier: Apache-2.0
//! The look of tables: plain text, a rule under the head, as wide as the terminal allows.

use comfy_table::{ContentArrangement, Table, presets};

/// Makes a table with these column heads.
#[must_use]
pub fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head.to_vec());
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(columns) = crate::ui::terminal::columns() {
        table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
    }
    table
}
