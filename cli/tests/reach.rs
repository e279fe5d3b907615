// SPDX-License-Identifier: Apache-2.0
//! `bulkhead check` says who can reach whom: as tables, as JSON, and as a graph that Graphviz reads.

use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SYSTEM: &str = "tests/texts/reach.toml";

fn tool(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .args(arguments)
        .output()
        .expect("the tool runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// A token of the DOT language, as far as the tool uses the language.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Id(String),
    Mark(&'static str),
}

/// Takes a text apart by the rules of Graphviz' page "DOT Language": an ID is a word or a quoted text in
/// which only a quote has to be escaped.
fn tokens(text: &str) -> Vec<Token> {
    let mut rest = text.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let marks = ["->", "{", "}", "[", "]", "=", ";", ","];
        if let Some(mark) = marks.into_iter().find(|mark| rest.starts_with(mark)) {
            tokens.push(Token::Mark(mark));
            rest = &rest[mark.len()..];
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let is_end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            });
            let end = end.expect("a quoted ID has an end") + 1;
            assert!(!rest[1..end].contains('\n'), "a line break in an ID");
            tokens.push(Token::Id(rest[1..end].to_owned()));
            rest = &rest[end + 1..];
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let end = end.unwrap_or(rest.len());
            assert!(end > 0 && !first.is_ascii_digit(), "no ID begins with {first:?}");
            tokens.push(Token::Id(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens
}

/// Names and values of an edge.
type Attributes = Vec<(String, String)>;

/// A graph: its nodes, and its edges with their attributes.
#[derive(Debug, Default)]
struct Graph {
    nodes: BTreeSet<String>,
    edges: Vec<(String, String, Attributes)>,
}

/// Reads `digraph ID { statements }`.
fn graph(text: &str) -> Graph {
    let tokens = tokens(text);
    let mut graph = Graph::default();
    let [
        Token::Id(kind),
        Token::Id(_),
        Token::Mark("{"),
        body @ ..,
        Token::Mark("}"),
    ] = &tokens[..]
    else {
        panic!("no graph: {tokens:?}");
    };
    assert_eq!(kind, "digraph");
    for statement in body.split(|token| *token == Token::Mark(";")) {
        match statement {
            [] | [Token::Id(_), Token::Mark("="), Token::Id(_)] => {}
            [Token::Id(node)] => assert!(graph.nodes.insert(node.clone())),
            [Token::Id(word), Token::Mark("["), list @ .., Token::Mark("]")] => {
                assert!(word == "node" && !attributes(list).is_empty());
            }
            [
                Token::Id(from),
                Token::Mark("->"),
                Token::Id(to),
                Token::Mark("["),
                list @ ..,
                Token::Mark("]"),
            ] => {
                graph.edges.push((from.clone(), to.clone(), attributes(list)));
            }
            other => panic!("no statement: {other:?}"),
        }
    }
    graph
}

fn attributes(list: &[Token]) -> Attributes {
    list.split(|token| *token == Token::Mark(","))
        .map(|one| match one {
            [Token::Id(name), Token::Mark("="), Token::Id(value)] => (name.clone(), value.clone()),
            other => panic!("no attribute: {other:?}"),
        })
        .collect()
}

/// Lets Graphviz read the graph, where Graphviz is installed.
fn graphviz_reads(text: &str) {
    let command = Command::new("dot")
        .arg("-Tcanon")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut dot) = command else { return };
    let mut input = dot.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    assert!(dot.wait().expect("it ends").success());
}

#[test]
fn the_graph_is_the_document_in_the_language_of_graphviz() {
    let text = tool(&["check", "--dot", SYSTEM]);
    graphviz_reads(&text);
    let graph = graph(&text);
    let names: Vec<&str> = graph.nodes.iter().map(String::as_str).collect();
    assert_eq!(names, ["client", "sensor", "server", "watcher"]);

    let document: Value = serde_json::from_str(&tool(&["check", "--json", SYSTEM])).expect("a document");
    let rows = document["systems"][0]["system"]["reach"]
        .as_array()
        .expect("rows");
    let word = |row: &Value, key: &str| row[key].as_str().expect("a word").to_owned();
    let told: BTreeSet<_> = rows
        .iter()
        .map(|row| {
            let label = format!("{}: {}", word(row, "by"), word(row, "how"));
            (
                word(row, "from"),
                word(row, "to"),
                label,
                row["direct"].as_bool().expect("a bool"),
            )
        })
        .collect();
    let mut drawn = BTreeSet::new();
    for (from, to, attributes) in &graph.edges {
        let of = |name: &str| attributes.iter().find(|(key, _)| key == name);
        let (_, label) = of("label").expect("a label");
        for line in label.split("\\n") {
            drawn.insert((from.clone(), to.clone(), line.to_owned(), of("style").is_none()));
        }
    }
    assert_eq!(drawn, told);
    let direct: BTreeSet<_> = told.iter().filter(|row| row.3).collect();
    let row = |from: &str, to: &str, label: &str, is_direct| {
        (from.to_owned(), to.to_owned(), label.to_owned(), is_direct)
    };
    let expected = [
        row("client", "sensor", "lock table: owns for a time", true),
        row("client", "server", "port requests: sends messages", true),
        row(
            "client",
            "watcher",
            "event gate of watcher: tells of its state changes",
            true,
        ),
        row("sensor", "client", "channel readings: writes shared memory", true),
        row("sensor", "client", "doorbell of channel readings: rings", true),
        row("sensor", "client", "lock table: owns for a time", true),
        row("server", "client", "port requests: answers calls", true),
        row("server", "watcher", "event gate of watcher: raises events", true),
    ];
    assert_eq!(direct, expected.iter().collect());
    // A reply to a call brings the client what the server has, and a call the other way round.
    assert!(told.contains(&row(
        "client",
        "watcher",
        "event gate of watcher: raises events",
        false
    )));
    assert!(told.contains(&row("server", "sensor", "lock table: owns for a time", false)));
    assert!(told.contains(&row(
        "server",
        "client",
        "partition client: starts, stops and restarts",
        false
    )));
    // No partition can give anything to the sensor or the watcher.
    let could = document["systems"][0]["system"]["could_hold"]
        .as_array()
        .expect("rows");
    let holders: BTreeSet<String> = could.iter().map(|row| word(row, "partition")).collect();
    assert_eq!(holders, ["client".to_owned(), "server".to_owned()].into());
}

#[test]
fn the_tables_say_the_same() {
    let text = tool(&["check", SYSTEM]);
    let part = |title: &str| {
        let from = text.find(&format!("\n{title}\n")).expect("a table") + title.len() + 2;
        text[from..].split("\n\n").next().unwrap_or_default().to_owned()
    };
    let direct = part("Who can reach whom");
    assert!(
        direct.contains("raises events") && !direct.contains("starts, stops"),
        "{direct}"
    );
    let granted = part("Who could reach whom by grants");
    assert!(granted.contains("starts, stops and restarts"), "{granted}");
    let gains = part("Who could hold what by grants");
    assert!(gains.contains("lock table"), "{gains}");
}
