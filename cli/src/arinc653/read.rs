// SPDX-License-Identifier: Apache-2.0
//! From the text of an XML file to a module.

use super::Finding;
use super::elements::{Findings, is_name};
use super::model::{Channel, Module, Partition, Port, PortKind, Schedule, Window};
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

/// Characters of the name of a partition, of a schedule and of a port of a manifest at most.
const NAME: usize = 31;
/// Characters of the name of a capability at most. The program finds a port by that name.
const CAPABILITY: usize = 23;

/// Reads a module. The findings beside it are notes.
///
/// # Errors
/// Everything that is wrong, and the notes.
pub fn read(text: &str) -> Result<(Module, Vec<Finding>), Vec<Finding>> {
    let document = Document::parse(text).map_err(|error| {
        vec![Finding {
            line: error.pos().row,
            column: error.pos().col,
            text: format!("this is no XML: {error}"),
            is_note: false,
        }]
    })?;
    let mut reader = Reader::default();
    reader.module(document.root_element());
    let findings = reader.findings.0;
    if findings.iter().any(|finding| !finding.is_note) {
        return Err(findings);
    }
    Ok((reader.module, findings))
}

#[derive(Default)]
struct Reader {
    module: Module,
    findings: Findings,
    /// The codes of errors, by `ErrorIdentifier`.
    codes: BTreeMap<u64, String>,
}

impl Reader {
    fn module(&mut self, root: Node<'_, '_>) {
        let name = root.tag_name().name();
        if name != "ARINC_653_Module" {
            let wrong = format!("the root is `{name}`, and not `ARINC_653_Module`");
            return self.findings.wrong(root, wrong);
        }
        self.module.name = root.attribute("ModuleName").unwrap_or("").to_owned();
        let elements = || root.children().filter(Node::is_element);
        // Partitions and codes first: the other tables name them.
        for node in elements() {
            match node.tag_name().name() {
                "Partition" => self.partition(node),
                "System_HM_Table" => self.codes(node),
                _ => {}
            }
        }
        // A table that names a partition which could not be read would be wrong for that reason alone.
        if self.findings.0.iter().any(|finding| !finding.is_note) {
            return;
        }
        for node in elements() {
            match node.tag_name().name() {
                "Partition" | "System_HM_Table" => {}
                "Partition_Memory" => self.memory(node),
                "Module_Schedule" => self.schedule(node),
                "Connection_Table" => self.connections(node),
                "Partition_HM_Table" => self.health(node),
                other => self
                    .findings
                    .note(node, format!("`{other}` has no meaning here and is left out")),
            }
        }
        if self.module.partitions.is_empty() {
            self.findings.wrong(root, "the module has no partition");
        }
        if self.module.schedules.is_empty() {
            self.findings.wrong(root, "the module has no `Module_Schedule`");
        }
    }

    fn partition(&mut self, node: Node<'_, '_>) {
        let identifier = self.findings.small(node, &["PartitionIdentifier"]);
        let name = self.findings.name(node, &["PartitionName", "Name"], NAME);
        let mut ports = Vec::new();
        for child in node.children().filter(Node::is_element) {
            let port = match child.tag_name().name() {
                "Sampling_Port" => self.port(child, true),
                "Queuing_Port" => self.port(child, false),
                "Process" => {
                    let text = "processes are created by the program, and are left out";
                    self.findings.note(child, text);
                    None
                }
                other => {
                    self.findings
                        .note(child, format!("`{other}` has no meaning here and is left out"));
                    None
                }
            };
            ports.extend(port);
        }
        let (Some(identifier), Some(name)) = (identifier, name) else {
            return;
        };
        let mut others = self.module.partitions.iter();
        if others.any(|other| other.identifier == identifier || other.name == name) {
            let wrong = format!("there is a partition {identifier} or `{name}` already");
            return self.findings.wrong(node, wrong);
        }
        self.module.partitions.push(Partition {
            identifier,
            name,
            ports,
            ..Partition::default()
        });
    }

    fn port(&mut self, node: Node<'_, '_>, sampling: bool) -> Option<Port> {
        let name = self.findings.name(node, &["PortName", "Name"], CAPABILITY);
        let size = self.findings.small(node, &["MaxMessageSize"]);
        let kind = if sampling {
            self.findings
                .time(node, &["RefreshRateSeconds"])
                .map(PortKind::Sampling)
        } else {
            let names = ["MaxNbMessages", "MaxNbMessage"];
            self.findings.small(node, &names).map(PortKind::Queuing)
        };
        let is_source = match self.findings.text(node, &["Direction"])? {
            "SOURCE" => true,
            "DESTINATION" => false,
            other => {
                let wrong = format!("the direction is \"{other}\", neither SOURCE nor DESTINATION");
                self.findings.wrong(node, wrong);
                return None;
            }
        };
        Some(Port {
            name: name?,
            is_source,
            size: size?,
            kind: kind?,
        })
    }

    /// Returns the place of the partition that an element names by its identifier.
    fn partition_of(&mut self, node: Node<'_, '_>) -> Option<usize> {
        let identifier = self.findings.small(node, &["PartitionIdentifier"])?;
        let mut partitions = self.module.partitions.iter();
        let found = partitions.position(|partition| partition.identifier == identifier);
        if found.is_none() {
            self.findings
                .wrong(node, format!("there is no partition {identifier}"));
        }
        found
    }

    fn memory(&mut self, node: Node<'_, '_>) {
        let Some(place) = self.partition_of(node) else {
            return;
        };
        for child in node.children().filter(Node::is_element) {
            let size = self.findings.number(child, &["SizeBytes", "Size"]).unwrap_or(0);
            let memory = &mut self.module.partitions[place].memory;
            *memory = memory.saturating_add(size);
        }
    }

    fn schedule(&mut self, node: Node<'_, '_>) {
        let number = self.module.schedules.len();
        let name = match node.attribute("ScheduleName") {
            Some(_) => self.findings.name(node, &["ScheduleName"], NAME),
            None => Some(format!("schedule-{number}")),
        };
        let frame = self.findings.time(node, &["MajorFrameSeconds"]);
        let mut windows = Vec::new();
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "Partition_Schedule" => self.windows_of(child, name.as_deref(), &mut windows),
                other => self
                    .findings
                    .note(child, format!("`{other}` has no meaning here and is left out")),
            }
        }
        let (Some(name), Some(frame)) = (name, frame) else {
            return;
        };
        windows.sort_by_key(|window| window.start);
        let schedule = Schedule { name, frame, windows };
        if node.attribute("InitialModuleSchedule") == Some("true") {
            self.module.schedules.insert(0, schedule);
        } else {
            self.module.schedules.push(schedule);
        }
    }

    fn windows_of(&mut self, node: Node<'_, '_>, schedule: Option<&str>, windows: &mut Vec<Window>) {
        let period = self.findings.time(node, &["PeriodSeconds"]);
        let duration = self.findings.time(node, &["PeriodDurationSeconds"]);
        let Some(place) = self.partition_of(node) else {
            return;
        };
        let partition = &mut self.module.partitions[place];
        let name = partition.name.clone();
        if let (Some(schedule), Some(period), Some(duration)) = (schedule, period, duration) {
            partition.times.push((schedule.to_owned(), (period, duration)));
        }
        for child in node
            .children()
            .filter(|child| child.has_tag_name("Window_Schedule"))
        {
            let start = self.findings.time(child, &["WindowStartSeconds"]);
            let duration = self.findings.time(child, &["WindowDurationSeconds"]);
            let is_period_start = self.findings.flag(child, "PartitionPeriodStart");
            if let (Some(start), Some(duration), Some(is_period_start)) = (start, duration, is_period_start) {
                windows.push(Window {
                    partition: name.clone(),
                    start,
                    duration,
                    is_period_start,
                });
            }
        }
    }

    fn connections(&mut self, node: Node<'_, '_>) {
        for channel in node.children().filter(|child| child.has_tag_name("Channel")) {
            let ends = |name: &'static str| channel.children().filter(move |child| child.has_tag_name(name));
            let (sources, destinations) = (ends("Source").count(), ends("Destination").count());
            if (sources, destinations) != (1, 1) {
                let wrong = format!(
                    "the channel has {sources} sources and {destinations} destinations; a port of Bulkhead hands each message to one receiver"
                );
                self.findings.wrong(channel, wrong);
                continue;
            }
            let source = ends("Source").next().and_then(|end| self.end(end, true));
            let destination = ends("Destination").next().and_then(|end| self.end(end, false));
            let number = self.findings.small(channel, &["ChannelIdentifier"]);
            let (Some(source), Some(destination), Some(number)) = (source, destination, number) else {
                continue;
            };
            let given = channel
                .attribute("ChannelName")
                .filter(|name| is_name(name, NAME));
            let name = given.map_or_else(|| format!("channel-{number}"), str::to_owned);
            if self.module.channels.iter().any(|other| other.name == name) {
                self.findings
                    .wrong(channel, format!("there is a channel `{name}` already"));
                continue;
            }
            self.module.channels.push(Channel {
                name,
                source,
                destination,
            });
        }
    }

    /// Returns the port that an end of a channel names.
    fn end(&mut self, node: Node<'_, '_>, is_source: bool) -> Option<(usize, usize)> {
        let Some(end) = node
            .children()
            .find(|child| child.has_tag_name("Standard_Partition"))
        else {
            self.findings.wrong(
                node,
                "this end is no `Standard_Partition`: nothing else can be an end here",
            );
            return None;
        };
        let place = self.partition_of(end)?;
        let name = self.findings.text(end, &["PortName"])?;
        let partition = &self.module.partitions[place];
        let Some(port) = partition.ports.iter().position(|port| port.name == name) else {
            let wrong = format!("partition `{}` has no port `{name}`", partition.name);
            self.findings.wrong(end, wrong);
            return None;
        };
        if partition.ports[port].is_source != is_source {
            let wrong = format!("the direction of port `{name}` is the other one");
            self.findings.wrong(end, wrong);
            return None;
        }
        Some((place, port))
    }

    fn codes(&mut self, node: Node<'_, '_>) {
        for level in node
            .descendants()
            .filter(|child| child.has_tag_name("Error_ID_Level"))
        {
            if let (Some(identifier), Some(code)) = (
                self.findings.number(level, &["ErrorIdentifier"]),
                level.attribute("ErrorCode"),
            ) {
                self.codes.insert(identifier, code.to_owned());
            }
        }
    }

    fn health(&mut self, node: Node<'_, '_>) {
        let Some(place) = self.partition_of(node) else {
            return;
        };
        for entry in node
            .descendants()
            .filter(|child| child.has_tag_name("Error_ID_Action"))
        {
            let Some(identifier) = self.findings.number(entry, &["ErrorIdentifier"]) else {
                continue;
            };
            let class = match self.codes.get(&identifier).map(String::as_str) {
                Some("MEMORY_VIOLATION") => "memory",
                Some("ILLEGAL_REQUEST") => "system",
                Some("NUMERIC_ERROR") => "task",
                other => {
                    let text = left_out(identifier, other, entry.attribute("Action"));
                    self.findings.note(entry, text);
                    continue;
                }
            };
            let action = match self.findings.text(entry, &["Action"]) {
                Some("IDLE") => "stop",
                Some("COLD_START") => "restart",
                Some("WARM_START") => "restart-warm",
                Some(other) => {
                    let wrong = format!(
                        "\"{other}\" is no action for a fault that the CPU finds: IDLE, COLD_START or WARM_START"
                    );
                    self.findings.wrong(entry, wrong);
                    continue;
                }
                None => continue,
            };
            let health = &mut self.module.partitions[place].health;
            match health.iter().find(|(own, _)| *own == class) {
                None => health.push((class, action)),
                Some((_, own)) if *own == action => {}
                Some((_, own)) => {
                    let text = format!("the manifest has one action for `{class}` in all states, \"{own}\"");
                    self.findings.note(entry, text);
                }
            }
        }
    }
}

/// Says that an action is left out, and where the reaction to its error is instead.
fn left_out(identifier: u64, code: Option<&str>, action: Option<&str>) -> String {
    let action = action.unwrap_or("none");
    let place = match code {
        Some("DEADLINE_MISSED" | "APPLICATION_ERROR" | "STACK_OVERFLOW") => {
            "the services find this error, so the table is in the program's configuration"
        }
        Some(_) => "nothing here finds this error",
        None => "the `System_HM_Table` has no code for this error",
    };
    let code = code.unwrap_or("unknown");
    format!("the action {action} for error {identifier}, {code}, is left out: {place}")
}
