//! Whether a program keeps the fields that events are keyed by, as far as its text tells.
//!
//! Pure. The rule: a key field stays as it came. What the text shows to drop or overwrite one is refused here; what it
//! leaves open (`. = merge(., x)`) is looked at event by event, when it runs (`lane`).

use hapax_model::field::FieldPath;
use vrl::diagnostic::Span;
use vrl::parser::ast::{AssignmentOp, Container, Expr, Node, Opcode};
use vrl::path::OwnedSegment;

use crate::syntax::{Assigned, Facts, event_path};

/// What a program does to a key field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Events come out without it.
    Drops,
    /// It comes out with another value.
    Overwrites,
}

/// A key field that does not come through, and where in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Harmed {
    pub(crate) key: FieldPath,
    pub(crate) harm: Harm,
    pub(crate) span: Span,
}

/// How a key field fares in an expression that takes the place of what held it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is there as it was.
    Kept,
    /// It is not there.
    Dropped,
    /// It is something else.
    Overwritten,
    /// Only an event can tell.
    Open,
}

/// Every harm that the text shows.
pub(crate) fn harmed(facts: &Facts, keys: &[FieldPath]) -> Vec<Harmed> {
    let mut found = Vec::new();
    for key in keys {
        let names: Vec<OwnedSegment> = key.names().iter().map(|name| OwnedSegment::field(name)).collect();
        let mut add = |harm, span| found.push(Harmed { key: key.clone(), harm, span });
        for assigned in &facts.assigned {
            match fate_by(assigned, &names) {
                Fate::Kept | Fate::Open => {}
                Fate::Dropped => add(Harm::Drops, assigned.span),
                Fate::Overwritten => add(Harm::Overwrites, assigned.span),
            }
        }
        let removals = facts.calls.iter().filter(|call| &**call.call.ident == "del");
        for call in removals {
            let path = call.call.arguments.first().and_then(|argument| event_path(&argument.expr));
            if path.is_some_and(|path| path.starts_with(&names) || names.starts_with(path)) {
                add(Harm::Drops, call.span);
            }
        }
    }
    found
}

/// The same for key fields that no input has: the program may make them, but not of a constant, and what it takes away
/// must be made below.
pub(crate) fn unmade(facts: &Facts, keys: &[FieldPath]) -> Vec<Harmed> {
    let stays = |harmed: &Harmed| {
        let names: Vec<OwnedSegment> = harmed.key.names().iter().map(|name| OwnedSegment::field(name)).collect();
        match harmed.harm {
            Harm::Drops => !facts
                .assigned
                .iter()
                .any(|assigned| assigned.span.start() > harmed.span.start() && assigned.path.starts_with(&names[..1])),
            Harm::Overwrites => facts.assigned.iter().any(|assigned| {
                assigned.span == harmed.span
                    && assigned.expr.as_ref().is_some_and(|expr| {
                        assigned.path.len() < names.len()
                            || (assigned.path == names && matches!(expr.inner(), Expr::Literal(_)))
                    })
            }),
        }
    };
    harmed(facts, keys).into_iter().filter(stays).collect()
}

/// What an assignment does to the field at `key`.
fn fate_by(assigned: &Assigned, key: &[OwnedSegment]) -> Fate {
    let target = assigned.path.as_slice();
    match &assigned.expr {
        // The assignment of an error, and one inside of the key's own value.
        None if target.starts_with(key) || key.starts_with(target) => Fate::Overwritten,
        None => Fate::Kept,
        Some(_) if target.len() > key.len() && target.starts_with(key) => Fate::Overwritten,
        Some(_) if !key.starts_with(target) => Fate::Kept,
        Some(expr) if target.len() == key.len() => match event_path(expr) {
            Some(path) if path == key => Fate::Kept,
            Some(_) | None => Fate::Overwritten,
        },
        Some(expr) => match assigned.op {
            AssignmentOp::Assign => fate_in(expr, key, target.len()),
            AssignmentOp::Merge => merged(Fate::Kept, expr, key, target.len()),
        },
    }
}

/// How the field at `key` fares if `expr` takes the place of its first `depth` names.
fn fate_in(expr: &Node<Expr>, key: &[OwnedSegment], depth: usize) -> Fate {
    if let Some(path) = event_path(expr) {
        return if *path == key[..depth] { Fate::Kept } else { Fate::Open };
    }
    match expr.inner() {
        // A constant: every event would have the same key.
        Expr::Literal(_) => Fate::Overwritten,
        Expr::Container(container) => match container.inner() {
            Container::Group(group) => fate_in(&group.0, key, depth),
            Container::Object(object) => match key.get(depth) {
                Some(OwnedSegment::Field(name)) => {
                    let inner = object.clone().into_inner().into_iter().find(|(known, _)| **known.inner() == **name);
                    inner.map_or(Fate::Dropped, |(_, value)| fate_in(&value, key, depth + 1))
                }
                Some(OwnedSegment::Index(_)) | None => Fate::Overwritten,
            },
            // Each element of an array that replaces the event is an event.
            Container::Array(array) if depth == 0 => {
                let fates = array.clone().into_inner().into_iter().map(|item| fate_in(&item, key, 0));
                fates.fold(Fate::Kept, |worst, next| if worst == Fate::Kept { next } else { worst })
            }
            Container::Array(_) => Fate::Overwritten,
            Container::Block(_) => Fate::Open,
        },
        Expr::Op(op) if *op.1.inner() == Opcode::Merge => merged(fate_in(&op.0, key, depth), &op.2, key, depth),
        Expr::Op(_)
        | Expr::IfStatement(_)
        | Expr::Assignment(_)
        | Expr::Query(_)
        | Expr::FunctionCall(_)
        | Expr::Variable(_)
        | Expr::Unary(_)
        | Expr::Abort(_)
        | Expr::Return(_)
        | Expr::Break(_) => Fate::Open,
    }
}

/// `left | right`: what right does not name is as left has it.
fn merged(left: Fate, right: &Node<Expr>, key: &[OwnedSegment], depth: usize) -> Fate {
    match fate_in(right, key, depth) {
        Fate::Dropped => left,
        named @ (Fate::Kept | Fate::Overwritten | Fate::Open) => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(program: &str, keys: &[&str]) -> Vec<(String, Harm)> {
        let facts = crate::syntax::facts(&vrl::parser::parse(program).expect("the program parses"));
        let keys: Vec<FieldPath> = keys.iter().map(|key| key.parse().expect("a path")).collect();
        harmed(&facts, &keys).into_iter().map(|h| (program[h.span.start()..h.span.end()].to_owned(), h.harm)).collect()
    }

    /// Goal: whatever the text shows to take a key field away is found, nothing else. Method: a list of both.
    #[test]
    fn key_fields_that_do_not_come_through_are_found() {
        for program in [
            ".a = .id",
            "del(.a)",
            ".id = .id",
            ". = {\"id\": .id, \"a\": 1}",
            ". = [{\"id\": .id}, {\"id\": .id, \"b\": 2}]",
            ". |= {\"a\": 1}",
            ". = . | {\"a\": 1}",
            ". = merge(., {\"a\": 1})",
            "id = .id\n. = {\"id\": id}",
            ". = {\"id\": .number}",
            ". = object!(parse_json!(string!(.message)))",
            ". = unnest(.lines)",
            ". = []",
        ] {
            assert_eq!(fates(program, &["id"]), [], "{program}");
        }
        for (program, at, harm) in [
            (".id = 5", ".id", Harm::Overwrites),
            (".id = upcase!(.id)", ".id", Harm::Overwrites),
            (".id = .other", ".id", Harm::Overwrites),
            (".id.inner = 1", ".id.inner", Harm::Overwrites),
            ("if .x == 1 { del(.id) }", "del(.id)", Harm::Drops),
            (".y = del(.id)", "del(.id)", Harm::Drops),
            (".id, err = to_int(.id)", ".id", Harm::Overwrites),
            (".ok, .id = to_int(.x)", ".id", Harm::Overwrites),
            (". = {\"a\": .id}", ".", Harm::Drops),
            (". = {\"id\": 5}", ".", Harm::Overwrites),
            (". |= {\"id\": 5}", ".", Harm::Overwrites),
            (". = [{\"id\": .id}, {\"a\": 1}]", ".", Harm::Drops),
            (". = {}", ".", Harm::Drops),
            (". = 5", ".", Harm::Overwrites),
        ] {
            assert_eq!(fates(program, &["id"]), [(at.to_owned(), harm)], "{program}");
        }
    }

    /// Goal: a key field that no input has may be made, and is missed where it is not. Method: a list of both.
    #[test]
    fn key_fields_that_no_input_has_may_be_made() {
        let told = |program: &str| {
            let facts = crate::syntax::facts(&vrl::parser::parse(program).expect("the program parses"));
            unmade(&facts, &["id".parse().expect("a path")]).iter().map(|harmed| harmed.harm).collect::<Vec<_>>()
        };
        for program in [
            ".id = upcase!(.line)",
            ".id = .other",
            ".id, err = to_int(.line)",
            ". = {\"id\": to_int!(.line)}",
            "line = .line\n. = {\"a\": 1}\n.id = to_int!(line)",
        ] {
            assert_eq!(told(program), [], "{program}");
        }
        for (program, harm) in [
            (".id = 5", Harm::Overwrites),
            (". = {\"id\": 5}", Harm::Overwrites),
            (". = {\"a\": .line}", Harm::Drops),
            (".id = .line\ndel(.id)", Harm::Drops),
        ] {
            assert_eq!(told(program), [harm], "{program}");
        }
    }

    /// Goal: nested key fields are followed into objects.
    #[test]
    fn nested_key_fields_are_followed() {
        for program in [
            ".order.total = 5",
            ". = {\"order\": .order}",
            ". = {\"order\": {\"id\": .order.id}}",
            ".order = {\"id\": .order.id}",
            ".order |= {\"a\": 1}",
            "del(.order.total)",
        ] {
            assert_eq!(fates(program, &[".order.id"]), [], "{program}");
        }
        for program in ["del(.order)", "del(.order.id)", ".order = {}", ". = {\"order\": {}}", ".order = 5", ". = {}"] {
            assert_eq!(fates(program, &[".order.id"]).len(), 1, "{program}");
        }
    }
}
