// SPDX-License-Identifier: Apache-2.0
//! The automaton of the rules, on every way through a program.
//!
//! A fact is pending from the instruction that begins it to the one that ends it. The state before an
//! instruction has each fact that is pending on some way to there. So two ways that meet join by union, and a
//! fact that is not in the state has ended on every way. Each function has a summary: the facts that are
//! pending where it returns, by the function itself or its caller, and the facts that its caller may not
//! bring along. A call is the summary of its target. A call by an address is the summary of all functions
//! whose address is taken.

use std::collections::{BTreeMap, BTreeSet};

/// Facts, a bit each.
pub(super) type Facts = u32;
/// The number of facts that a class may have.
pub(super) const FACTS: usize = 12;

/// The way on from an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flow {
    /// To the next one.
    #[default]
    Next,
    /// To this address, and to the next one if it is conditional.
    Jump(u32, bool),
    /// To this address and back.
    Call(u32),
    /// To a function by its address and back.
    CallByAddress,
    /// To a place by its address: one of this function, as a table says, or another function.
    JumpByAddress,
    /// To the caller, and to the next one if it is conditional.
    Return(bool),
    /// Out of the hypervisor. An exception comes back from there.
    Leave,
    /// Nowhere.
    Stop,
}

/// An instruction, as far as the rules see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub address: u32,
    /// The address of the function.
    pub function: u32,
    /// The facts that may not be pending here.
    pub needs: Facts,
    /// The facts that may not be pending here if the same function has begun them.
    pub promises: Facts,
    /// The facts that end.
    pub ends: Facts,
    /// The facts that end, and each begins another one instead.
    pub turns: &'static [(usize, usize)],
    /// The facts that begin.
    pub begins: Facts,
    pub flow: Flow,
}

/// The reasons why a fact is pending: a fact of the caller, or an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Source {
    callers: Facts,
    own: Option<u32>,
}

impl Source {
    /// Adds other reasons. Returns whether there was one that is new.
    fn join(&mut self, other: Self) -> bool {
        let before = *self;
        self.callers |= other.callers;
        // The first reason stays, so that a loop ends.
        self.own = self.own.or(other.own);
        *self != before
    }

    fn is_pending(self) -> bool {
        self.callers != 0 || self.own.is_some()
    }
}

/// The pending facts at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State([Source; FACTS]);

impl State {
    /// Returns the state where a function begins: the facts of the caller.
    fn of_caller() -> Self {
        let mut state = Self::default();
        for (fact, source) in state.0.iter_mut().enumerate() {
            source.callers = 1 << fact;
        }
        state
    }

    fn join(&mut self, other: &Self) -> bool {
        let pairs = self.0.iter_mut().zip(other.0);
        pairs.fold(false, |is_new, (own, other)| own.join(other) | is_new)
    }

    /// Returns the state without the facts of the caller.
    fn own(mut self) -> Self {
        for source in &mut self.0 {
            source.callers = 0;
        }
        self
    }

    fn apply(&mut self, node: &Node) {
        for (from, to) in node.turns {
            let moved = std::mem::take(&mut self.0[*from]);
            self.0[*to].join(moved);
        }
        for (fact, source) in self.0.iter_mut().enumerate() {
            if node.ends >> fact & 1 != 0 {
                *source = Source::default();
            }
            if node.begins >> fact & 1 != 0 {
                *source = Source {
                    callers: 0,
                    own: Some(node.address),
                };
            }
        }
    }

    /// Returns the state after a call, whose summary leaves facts in place of those before it.
    fn after(&self, exit: &Self) -> Self {
        let mut state = Self::default();
        for (source, left) in state.0.iter_mut().zip(exit.0) {
            source.own = left.own;
            for (fact, before) in self.0.iter().enumerate() {
                if left.callers >> fact & 1 != 0 {
                    source.join(*before);
                }
            }
        }
        state
    }
}

/// The effect of a function on its caller's facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Summary {
    /// The facts where it returns, if it does.
    exit: Option<State>,
    /// For each fact a place where it may not be pending, if it is not ended before.
    needs: [Option<u32>; FACTS],
}

impl Summary {
    fn join(&mut self, other: &Self) {
        if let Some(state) = &other.exit {
            self.exit.get_or_insert_default().join(state);
        }
        for (own, other) in self.needs.iter_mut().zip(other.needs) {
            *own = own.or(other);
        }
    }
}

/// A fact that is pending where it may not be: its number, the instruction that began it, and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    pub fact: usize,
    pub origin: u32,
    pub place: u32,
}

/// The result of a walk through a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Judged {
    summary: Summary,
    violations: BTreeSet<Violation>,
}

/// The first instruction of a function, and the range of its symbol.
#[derive(Clone, Debug)]
struct Entry {
    first: usize,
    range: std::ops::Range<usize>,
    /// Functions that are called or continued.
    callees: BTreeSet<u32>,
    is_by_address: bool,
    leaves: bool,
}

/// A program: its instructions in the order of their addresses, and its functions.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub nodes: Vec<Node>,
    entries: BTreeMap<u32, Entry>,
    /// Functions whose address is taken.
    taken: BTreeSet<u32>,
    callers: BTreeMap<u32, BTreeSet<u32>>,
    judged: BTreeMap<u32, Judged>,
    /// The summary of a call by an address.
    by_address: Summary,
    /// The state with which an exception of a guest comes back.
    back: State,
}

impl Graph {
    /// Makes the graph of these instructions, and finds the functions: the symbols, the targets of calls and
    /// of jumps to another symbol, and each instruction that is not reached otherwise, as a vector.
    pub(super) fn new(nodes: Vec<Node>, taken: BTreeSet<u32>) -> Self {
        let mut graph = Self {
            nodes,
            taken,
            ..Self::default()
        };
        let firsts: BTreeSet<u32> = graph.nodes.iter().map(|node| node.function).collect();
        let mut waiting: Vec<usize> = firsts.iter().filter_map(|first| graph.at(*first)).collect();
        let mut reached = vec![false; graph.nodes.len()];
        loop {
            while let Some(first) = waiting.pop() {
                graph.explore(first, &mut reached, &mut waiting);
            }
            match reached.iter().position(|reached| !reached) {
                Some(first) => waiting.push(first),
                None => break,
            }
        }
        for (address, entry) in &graph.entries {
            for callee in &entry.callees {
                graph.callers.entry(*callee).or_default().insert(*address);
            }
        }
        graph
    }

    /// Returns the place of an instruction.
    fn at(&self, address: u32) -> Option<usize> {
        self.nodes
            .binary_search_by_key(&address, |node| node.address)
            .ok()
    }

    /// Finds the instructions of the function that begins here, and the functions that it leads to.
    fn explore(&mut self, first: usize, reached: &mut [bool], waiting: &mut Vec<usize>) {
        let Some(node) = self.nodes.get(first) else { return };
        let (address, function) = (node.address, node.function);
        if self.entries.contains_key(&address) {
            return;
        }
        let start = self.nodes.partition_point(|node| node.address < function);
        let length = self.nodes[start..]
            .iter()
            .take_while(|node| node.function == function)
            .count();
        let range = start..start + length;
        let mut entry = Entry {
            first,
            range: range.clone(),
            callees: BTreeSet::new(),
            is_by_address: false,
            leaves: false,
        };
        let mut seen = vec![false; length];
        let mut next = vec![first];
        while let Some(place) = next.pop() {
            if std::mem::replace(&mut seen[place - start], true) {
                continue;
            }
            reached[place] = true;
            let (inner, outer) = self.successors(place, &range);
            next.extend(inner);
            entry.callees.extend(outer);
            let flow = self.nodes[place].flow;
            entry.is_by_address |= matches!(flow, Flow::CallByAddress | Flow::JumpByAddress);
            entry.leaves |= flow == Flow::Leave;
            if flow == Flow::JumpByAddress {
                next.extend(self.blocks(&range));
            }
        }
        waiting.extend(entry.callees.iter().filter_map(|callee| self.at(*callee)));
        self.entries.insert(address, entry);
    }

    /// Returns the instructions of the same function that may follow, and the functions that are called, or
    /// that the function goes on in.
    fn successors(&self, place: usize, range: &std::ops::Range<usize>) -> (Vec<usize>, Vec<u32>) {
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        let mut go = |to: Option<usize>| match to {
            Some(to) if range.contains(&to) => inner.push(to),
            Some(to) => outer.push(self.nodes[to].address),
            None => {}
        };
        let next = Some(place + 1).filter(|next| *next < self.nodes.len());
        match self.nodes[place].flow {
            Flow::Next | Flow::CallByAddress | Flow::Return(true) => go(next),
            Flow::Jump(to, is_conditional) => {
                go(self.at(to));
                if is_conditional {
                    go(next);
                }
            }
            Flow::Call(to) => {
                go(next);
                outer.extend(self.at(to).map(|to| self.nodes[to].address));
            }
            Flow::JumpByAddress | Flow::Return(false) | Flow::Leave | Flow::Stop => {}
        }
        (inner, outer)
    }

    /// Returns the first instructions of blocks: a table of branches leads to some of them. An instruction
    /// begins one if a branch leads to it, or if one is before it.
    fn blocks(&self, range: &std::ops::Range<usize>) -> BTreeSet<usize> {
        let mut blocks = BTreeSet::new();
        for place in range.clone() {
            if let Flow::Jump(to, _) = self.nodes[place].flow {
                blocks.extend(self.at(to));
            }
            if !matches!(
                self.nodes[place].flow,
                Flow::Next | Flow::Call(_) | Flow::CallByAddress
            ) {
                blocks.insert(place + 1);
            }
        }
        blocks.retain(|place| range.contains(place));
        blocks
    }

    /// Computes all summaries and violations.
    pub(super) fn solve(&mut self) {
        self.settle(self.entries.keys().copied().collect());
    }

    /// Computes the summaries of these functions, and of all that depend on them. Returns those that have
    /// changed, as they were.
    fn settle(&mut self, mut waiting: BTreeSet<u32>) -> BTreeMap<u32, Judged> {
        let mut changed = BTreeMap::new();
        loop {
            let (mut is_called, mut is_back) = (false, false);
            while let Some(address) = waiting.pop_last() {
                let judged = self.judge(address);
                if self.judged.get(&address) == Some(&judged) {
                    continue;
                }
                let before = self.judged.insert(address, judged.clone()).unwrap_or_default();
                if before.summary != judged.summary {
                    waiting.extend(self.callers.get(&address).into_iter().flatten());
                    is_called |= self.taken.contains(&address);
                    is_back |= !self.callers.contains_key(&address);
                }
                changed.entry(address).or_insert(before);
            }
            if is_called {
                let called = self.joined();
                is_called = std::mem::replace(&mut self.by_address, called.clone()) != called;
            }
            if is_back {
                let back = self.returned();
                is_back = std::mem::replace(&mut self.back, back) != back;
            }
            let depends = |entry: &Entry| entry.is_by_address && is_called || entry.leaves && is_back;
            let others = self.entries.iter().filter(|(_, entry)| depends(entry));
            waiting.extend(others.map(|(address, _)| *address));
            if waiting.is_empty() {
                return changed;
            }
        }
    }

    /// Returns what the functions whose address is taken have in common.
    fn joined(&self) -> Summary {
        let mut joined = Summary::default();
        for judged in self.taken.iter().filter_map(|address| self.judged.get(address)) {
            joined.join(&judged.summary);
        }
        joined
    }

    /// Returns the facts that handlers leave. The functions without a caller return to the one that has left
    /// for the guest.
    fn returned(&self) -> State {
        let mut state = State::default();
        for (address, judged) in &self.judged {
            if let (false, Some(exit)) = (self.callers.contains_key(address), &judged.summary.exit) {
                state.join(&exit.own());
            }
        }
        state
    }

    fn summary(&self, address: u32) -> Option<&Summary> {
        self.judged.get(&address).map(|judged| &judged.summary)
    }

    /// Walks all ways through a function.
    fn judge(&self, address: u32) -> Judged {
        let Some(entry) = self.entries.get(&address) else {
            return Judged::default();
        };
        let mut walk = Walk {
            graph: self,
            range: entry.range.clone(),
            states: vec![None; entry.range.len()],
            waiting: BTreeSet::new(),
            judged: Judged::default(),
        };
        walk.reach(entry.first, &State::of_caller());
        while let Some(place) = walk.waiting.pop_first() {
            walk.step(place);
        }
        walk.judged
    }

    /// Returns all violations. The facts in `at_start` are pending before the first instruction.
    pub(super) fn violations(&self, at_start: Facts) -> BTreeSet<Violation> {
        self.violations_of(self.judged.keys(), at_start)
    }

    /// Returns the violations of these functions.
    fn violations_of<'a>(
        &self,
        functions: impl Iterator<Item = &'a u32>,
        at_start: Facts,
    ) -> BTreeSet<Violation> {
        let mut all = BTreeSet::new();
        for address in functions {
            let Some(Judged { summary, violations }) = self.judged.get(address) else {
                continue;
            };
            all.extend(violations.iter().copied());
            if self.callers.contains_key(address) || self.taken.contains(address) {
                continue;
            }
            let needs = summary.needs.iter().enumerate();
            let violated = needs.filter(|(fact, _)| at_start >> fact & 1 != 0);
            all.extend(violated.filter_map(|(fact, place)| {
                place.map(|place| Violation {
                    fact,
                    origin: *address,
                    place,
                })
            }));
        }
        all
    }

    /// Returns the facts that are pending where a function returns.
    #[cfg(test)]
    pub(super) fn left_by(&self, address: u32) -> Facts {
        let exit = self.judged.get(&address).and_then(|judged| judged.summary.exit);
        let sources = exit.unwrap_or_default().0.into_iter().enumerate();
        let left = sources.filter(|(_, source)| source.own.is_some());
        left.map(|(fact, _)| 1 << fact).sum()
    }

    /// Returns the violations that come up if one instruction ends nothing.
    pub(super) fn without(&mut self, place: usize, at_start: Facts) -> BTreeSet<Violation> {
        let Some(node) = self.nodes.get_mut(place) else {
            return BTreeSet::new();
        };
        let whole = node.clone();
        (node.ends, node.turns) = (0, &[]);
        let (by_address, back) = (self.by_address.clone(), self.back);
        let holds = |entry: &Entry| entry.range.contains(&place);
        let holders = self.entries.iter().filter(|(_, entry)| holds(entry));
        let before = self.settle(holders.map(|(address, _)| *address).collect());
        let found = self.violations_of(before.keys(), at_start);
        let functions: Vec<u32> = before.keys().copied().collect();
        self.judged.extend(before);
        (self.by_address, self.back) = (by_address, back);
        self.nodes[place] = whole;
        &found - &self.violations_of(functions.iter(), at_start)
    }
}

/// The walk through one function.
struct Walk<'a> {
    graph: &'a Graph,
    range: std::ops::Range<usize>,
    states: Vec<Option<State>>,
    waiting: BTreeSet<usize>,
    judged: Judged,
}

impl Walk<'_> {
    /// Joins a state into the one before an instruction.
    fn reach(&mut self, place: usize, state: &State) {
        let is_new = match &mut self.states[place - self.range.start] {
            Some(before) => before.join(state),
            empty => {
                *empty = Some(*state);
                true
            }
        };
        if is_new {
            self.waiting.insert(place);
        }
    }

    /// Goes on from an instruction with a state, which may lead into another function.
    fn go(&mut self, to: Option<usize>, state: &State) {
        match to {
            Some(to) if self.range.contains(&to) => self.reach(to, state),
            Some(to) => {
                let address = self.graph.nodes[to].address;
                if let Some(after) = self.call(self.graph.summary(address), state) {
                    self.leave(&after);
                }
            }
            None => {}
        }
    }

    fn leave(&mut self, state: &State) {
        self.judged.summary.exit.get_or_insert_default().join(state);
    }

    /// Demands that a fact is not pending at a place.
    fn demand(&mut self, fact: usize, source: Source, place: u32) {
        if let Some(origin) = source.own {
            self.judged.violations.insert(Violation { fact, origin, place });
        }
        for (caller, needs) in self.judged.summary.needs.iter_mut().enumerate() {
            if source.callers >> caller & 1 != 0 {
                *needs = needs.or(Some(place));
            }
        }
    }

    /// Returns the state after a call, if it returns.
    fn call(&mut self, summary: Option<&Summary>, state: &State) -> Option<State> {
        let summary = summary?;
        for (fact, needs) in summary.needs.iter().enumerate() {
            if let Some(place) = needs {
                self.demand(fact, state.0[fact], *place);
            }
        }
        summary.exit.as_ref().map(|exit| state.after(exit))
    }

    fn step(&mut self, place: usize) {
        let Some(mut state) = self.states[place - self.range.start] else {
            return;
        };
        let graph = self.graph;
        let node = &graph.nodes[place];
        for (fact, source) in state.0.into_iter().enumerate() {
            let own = source.own.and_then(|origin| graph.at(origin));
            let is_promised = own.is_some_and(|own| self.range.contains(&own));
            let is_promise = node.promises >> fact & 1 != 0 && is_promised;
            if source.is_pending() && (node.needs >> fact & 1 != 0 || is_promise) {
                self.demand(fact, source, node.address);
            }
        }
        state.apply(node);
        let next = Some(place + 1).filter(|next| *next < graph.nodes.len());
        match node.flow {
            Flow::Next => self.go(next, &state),
            Flow::Jump(to, is_conditional) => {
                self.go(graph.at(to), &state);
                if is_conditional {
                    self.go(next, &state);
                }
            }
            // Code that is not looked at is boot code of another mode.
            Flow::Call(to) if graph.at(to).is_none() => self.go(next, &state),
            Flow::Call(to) => {
                if let Some(after) = self.call(graph.summary(to), &state) {
                    self.go(next, &after);
                }
            }
            Flow::CallByAddress => {
                if let Some(after) = self.call(Some(&graph.by_address), &state) {
                    self.go(next, &after);
                }
            }
            Flow::JumpByAddress => {
                for to in graph.blocks(&self.range) {
                    self.reach(to, &state);
                }
                if let Some(after) = self.call(Some(&graph.by_address), &state) {
                    self.leave(&after);
                }
            }
            Flow::Return(is_conditional) => {
                self.leave(&state);
                if is_conditional {
                    self.go(next, &state);
                }
            }
            Flow::Leave => self.leave(&graph.back),
            Flow::Stop => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a node at `address`, of a function that begins at `function`.
    fn node(function: u32, address: u32, flow: Flow) -> Node {
        Node {
            address,
            function,
            flow,
            ..Node::default()
        }
    }

    fn begins(mut node: Node) -> Node {
        node.begins = 1;
        node
    }

    fn ends(mut node: Node) -> Node {
        node.ends = 1;
        node
    }

    fn needs(mut node: Node) -> Node {
        node.needs = 1;
        node
    }

    fn solved(nodes: Vec<Node>, taken: &[u32]) -> Graph {
        let mut graph = Graph::new(nodes, taken.iter().copied().collect());
        graph.solve();
        graph
    }

    fn places(graph: &Graph) -> Vec<(u32, u32)> {
        let found = graph.violations(0).into_iter();
        found.map(|found| (found.origin, found.place)).collect()
    }

    #[test]
    fn a_fact_goes_into_the_function_that_is_called() {
        let caller = |flow| vec![begins(node(0, 0, flow)), node(0, 4, Flow::Return(false))];
        let mut nodes = caller(Flow::Call(8));
        nodes.push(needs(node(8, 8, Flow::Return(false))));
        assert_eq!(places(&solved(nodes.clone(), &[])), [(0, 8)]);
        nodes[0].flow = Flow::CallByAddress;
        assert_eq!(places(&solved(nodes.clone(), &[])), []);
        assert_eq!(places(&solved(nodes, &[8])), [(0, 8)]);
    }

    #[test]
    fn a_fact_comes_back_from_a_function_that_ends_it_on_one_way_only() {
        let nodes = vec![
            begins(node(0, 0, Flow::Call(16))),
            needs(node(0, 4, Flow::Return(false))),
            node(16, 16, Flow::Jump(24, true)),
            ends(node(16, 20, Flow::Next)),
            node(16, 24, Flow::Return(false)),
        ];
        assert_eq!(places(&solved(nodes.clone(), &[])), [(0, 4)]);
        let mut nodes = nodes;
        nodes[2].flow = Flow::Next;
        let mut graph = solved(nodes, &[]);
        assert_eq!(places(&graph), []);
        let found = graph.without(3, 0).into_iter().next();
        assert_eq!(found.map(|found| (found.origin, found.place)), Some((0, 4)));
    }

    #[test]
    fn a_function_that_does_not_return_ends_the_way() {
        let nodes = vec![
            begins(node(0, 0, Flow::Call(16))),
            needs(node(0, 4, Flow::Return(false))),
            node(16, 16, Flow::Jump(16, false)),
        ];
        assert_eq!(places(&solved(nodes, &[])), []);
    }

    #[test]
    fn a_handler_comes_back_to_the_function_that_has_left() {
        let nodes = vec![
            node(0, 0, Flow::Call(16)),
            needs(node(0, 4, Flow::Return(false))),
            node(16, 16, Flow::Leave),
            begins(node(32, 32, Flow::Return(false))),
        ];
        let graph = solved(nodes, &[]);
        assert_eq!(places(&graph), [(32, 4)]);
        assert_eq!(graph.left_by(32), 1);
    }

    #[test]
    fn a_loop_and_a_recursion_end() {
        let nodes = vec![
            begins(node(0, 0, Flow::Next)),
            node(0, 4, Flow::Call(0)),
            needs(node(0, 8, Flow::Jump(4, true))),
            node(0, 12, Flow::Return(false)),
        ];
        assert_eq!(places(&solved(nodes, &[])), []);
        let nodes = vec![
            needs(node(0, 0, Flow::Next)),
            begins(node(0, 4, Flow::Jump(0, true))),
            node(0, 8, Flow::Return(false)),
        ];
        assert_eq!(places(&solved(nodes, &[])), [(4, 0)]);
    }

    #[test]
    fn one_fact_becomes_another_one() {
        let mut middle = node(0, 4, Flow::Next);
        middle.turns = &[(0, 1)];
        let mut last = node(0, 8, Flow::Return(false));
        last.needs = 2;
        let nodes = vec![begins(node(0, 0, Flow::Next)), middle, last];
        assert_eq!(places(&solved(nodes, &[])), [(0, 8)]);
    }
}
