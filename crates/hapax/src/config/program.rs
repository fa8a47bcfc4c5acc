//! A workflow's program: its problems with their place in the file, and its compiled form.
//!
//! Reads: the text of `transform`, and the fields that events are keyed by. Not here: the language (`hapax-transform`).

use super::checked::Transform;
use super::problem::{Problem, Problems};
use super::value::Value;
#[cfg(feature = "transform")]
use hapax_model::field::FieldPath;

/// Tells everything that is wrong with the program of `workflow`.
#[cfg(feature = "transform")]
pub(super) fn check_transform(workflow: &Value, problems: &mut Problems) {
    use super::problem::Place;
    let Some(transform) = workflow.get("transform") else { return };
    for fault in compile(workflow).and_then(Result::err).unwrap_or_default() {
        // The first line of a program stands where the text does, all others below it.
        let place = Place {
            file: transform.place.file.clone(),
            line: transform.place.line + fault.line - 1,
            column: transform.place.column + fault.column - 1,
        };
        let excerpt: String = fault.excerpt.lines().map(|line| format!("\n      {line}")).collect();
        problems.add(Problem::new(&place, fault.code, format!("{}{excerpt}", fault.message), fault.cure));
    }
}

/// Says that this edition cannot run programs.
#[cfg(not(feature = "transform"))]
pub(super) fn check_transform(workflow: &Value, problems: &mut Problems) {
    if let Some(transform) = workflow.get("transform") {
        let message = "\"transform\" is a VRL program, and this edition has no VRL";
        let cure = "build with --features transform, or map fields with the sink's columns";
        problems.add(Problem::new(&transform.place, super::problem::code::NOT_IN_EDITION, message, cure));
    }
}

/// The program, which is known to compile.
#[cfg(feature = "transform")]
pub(super) fn build_transform(workflow: &Value) -> Option<Transform> {
    let program = compile(workflow)?.ok()?;
    let limit = workflow.get("transformTimeout")?.duration()?;
    Some(Transform { text: program.text().to_owned(), limit, make: program.shared() })
}

#[cfg(not(feature = "transform"))]
pub(super) const fn build_transform(_: &Value) -> Option<Transform> {
    None
}

#[cfg(feature = "transform")]
fn compile(workflow: &Value) -> Option<Result<hapax_transform::Program, Vec<hapax_transform::Fault>>> {
    use hapax_model::delivery::Delivery;
    use hapax_model::key::{KeyNeed, Keyer, Uniqueness};
    let text = workflow.get("transform")?.text()?;
    let delivery = workflow.get("delivery").map(super::build::build_delivery).unwrap_or_default();
    let strategy = crate::assemble::plan::strategy(&Delivery::from(delivery));
    let keyer = Keyer::new(strategy, Uniqueness::WithVersion, KeyNeed::Fields);
    let names = declared_names(workflow);
    let came = |key: &&FieldPath| names.as_ref().is_none_or(|names| names.iter().any(|name| may_hold(name, key)));
    let (came, made): (Vec<FieldPath>, Vec<FieldPath>) = keyer.fields().iter().cloned().partition(|key| came(&key));
    Some(hapax_transform::Program::compile_for(text, &came, &made))
}

/// All fields that inputs can have, where the configuration names them: those of `csv.header`.
#[cfg(feature = "transform")]
fn declared_names(workflow: &Value) -> Option<Vec<String>> {
    let header = workflow.get("source")?.get("file")?.get("csv")?.get("header")?;
    header.items().iter().map(|name| name.text().map(ToOwned::to_owned)).collect()
}

/// Whether a CSV column of this name, which may be a path with points, is the field, has it inside, or is inside of it.
#[cfg(feature = "transform")]
fn may_hold(name: &str, key: &FieldPath) -> bool {
    name == key.names()[0] || name.split('.').next() == key.names().first().map(String::as_str)
}

#[cfg(all(test, feature = "transform"))]
#[path = "program_tests.rs"]
mod tests;
