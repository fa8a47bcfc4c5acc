//! The statements that give what is missing on our tables, on one line: first what a worker needs, then what a person does.

/// What stands before the statements that only a person's commands need; a comment, so that all of it can be pasted.
const FOR_A_PERSON: &str = "/* for dlq, reset, pause and resume too: */";

/// The statements that a message ends with.
pub(crate) fn cures_on_one_line(run: &[String], person: &[String]) -> String {
    match (run, person) {
        (run, []) => run.join(" "),
        ([], person) => person.join(" "),
        (run, person) => format!("{} {FOR_A_PERSON} {}", run.join(" "), person.join(" ")),
    }
}
