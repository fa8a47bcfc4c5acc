//! A program's text, checked and compiled; all that is wrong with it at once, each with its place.

use std::sync::Arc;

use hapax_engine::batch::Layout;
use hapax_engine::transform::{MakeTransform, Transform};
use hapax_model::field::FieldPath;
use sha2::{Digest as _, Sha256};
use vrl::compiler::{CompileConfig, compile_with_external};
use vrl::diagnostic::{Diagnostic, DiagnosticList, Note, Span};
use vrl::path::{OwnedSegment, PathPrefix};

use crate::functions::{ZONED, offered, refusal};
use crate::keys::{Harm, harmed, unmade};
use crate::lane::Lane;
use crate::syntax::{Call, Facts, Use, event_path, facts, literal_text};

/// The longest program, in bytes.
const LONGEST: usize = 64 * 1024;
/// The deepest brackets of a program: the compiler follows them on its stack.
const DEEPEST_BRACKETS: usize = 64;

/// The compiler's own codes for a call that can fail and is not handled.
const UNHANDLED: usize = 100;
const UNHANDLED_ASSIGNMENT: usize = 103;
const UNCHECKED_ARGUMENT: usize = 110;

/// One thing that is wrong with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The code of the page that explains it.
    pub code: &'static str,
    /// The line in the program, counted from 1.
    pub line: usize,
    /// The column in that line, counted from 1, in characters.
    pub column: usize,
    /// What is wrong, in one line.
    pub message: String,
    /// The program's line, and below it carets under what is meant.
    pub excerpt: String,
    /// What to do about it.
    pub cure: String,
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    pub(crate) compiled: vrl::compiler::Program,
    /// The names of all fields at the top of the event that the text mentions.
    pub(crate) names: Vec<String>,
    /// Fields that are removed without anybody looking at what they held.
    pub(crate) dropped: Vec<String>,
    /// Whether it looks at the event as a whole.
    pub(crate) reads_all: bool,
    text: String,
}

impl Program {
    /// Compiles `text` for events keyed by `keys`.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn compile(text: &str, keys: &[FieldPath]) -> Result<Self, Vec<Fault>> {
        Self::compile_for(text, keys, &[])
    }

    /// The same where no input can have the key fields `made`: the program makes them.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn compile_for(text: &str, keys: &[FieldPath], made: &[FieldPath]) -> Result<Self, Vec<Fault>> {
        let at = |code, span, message: String, cure: String| Fault::new(text, code, span, message, cure);
        if let Some(span) = out_of_bounds(text) {
            let message =
                format!("the program is too large: {LONGEST} bytes and {DEEPEST_BRACKETS} brackets deep are the most");
            return Err(vec![at("HX1406", span, message, "split the work, or do it where the events are made".into())]);
        }
        let parsed = vrl::parser::parse(text).map_err(|error| {
            let list = DiagnosticList::from(vec![Box::new(error) as Box<dyn vrl::diagnostic::DiagnosticMessage>]);
            faults_of(text, &list)
        })?;
        let facts = facts(&parsed);
        let mut faults: Vec<Fault> = facts.calls.iter().filter_map(|call| refused_call(text, call)).collect();
        faults.extend(facts.metadata.iter().map(|span| {
            let cure = "keep the value in a field, or in a variable: name = …";
            at("HX1404", *span, "an event has no metadata, so % leads nowhere".into(), cure.into())
        }));
        faults.extend(harmed(&facts, keys).into_iter().chain(unmade(&facts, made)).map(|harmed| {
            let key = &harmed.key;
            let (what, cure) = match harmed.harm {
                Harm::Drops => {
                    ("drops", format!("keep it: leave it where it is, or carry it over as \"{}\": {key}", last(key)))
                }
                Harm::Overwrites => {
                    let cure = "write into a field of another name, and name that one in keyFields; where no input has a field of \
                                this name the program may make it, as csv.header in the configuration can tell";
                    ("overwrites", cure.to_owned())
                }
            };
            at(
                "HX1405",
                harmed.span,
                format!("the transform {what} the key field {key}, by which rows find their place"),
                cure,
            )
        }));
        match compile_with_external(&runnable(text, &facts), &offered(), &Default::default(), CompileConfig::default())
        {
            Ok(result) if faults.is_empty() => Ok(Self::new(text, result.program, &facts)),
            Ok(_) => Err(sorted(faults)),
            Err(list) => {
                // What was refused above is an undefined function to the compiler: once is enough.
                let told: Vec<(usize, usize)> = faults.iter().map(|fault| (fault.line, fault.column)).collect();
                let others = faults_of(text, &list);
                faults.extend(others.into_iter().filter(|fault| !told.contains(&(fault.line, fault.column))));
                Err(sorted(faults))
            }
        }
    }

    fn new(text: &str, compiled: vrl::compiler::Program, facts: &Facts) -> Self {
        let info = compiled.info();
        let all = || info.target_queries.iter().chain(&info.target_assignments);
        let mut names: Vec<String> = Vec::new();
        for path in all().filter(|path| path.prefix == PathPrefix::Event) {
            if let Some(OwnedSegment::Field(name)) = path.path.segments.first()
                && !names.iter().any(|known| **known == **name)
            {
                names.push(name.to_string());
            }
        }
        let by_index = all().any(|path| matches!(path.path.segments.first(), Some(OwnedSegment::Index(_))));
        let by_call = facts.calls.iter().any(|call| &**call.call.ident == "unnest");
        let reads_all = by_index || by_call || info.target_queries.iter().any(|path| path.path.is_root());
        let dropped = names.iter().filter(|name| is_dropped(name, facts)).cloned().collect();
        Self { compiled, names, dropped, reads_all, text: text.to_owned() }
    }

    /// The program's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What names this program: a hash of its text, in hexadecimal.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        Sha256::digest(self.text.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The line of the program at byte `at`, counted from 1.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}

/// A program that lanes share.
#[derive(Debug)]
struct Shared(Arc<Program>);

impl MakeTransform for Shared {
    fn make(&self, layout: &Layout, keys: &[FieldPath]) -> Box<dyn Transform> {
        Box::new(Lane::new(Arc::clone(&self.0), layout, keys))
    }
}

impl Program {
    /// The program as the engine takes it.
    #[must_use]
    pub fn shared(self) -> Arc<dyn MakeTransform> {
        Arc::new(Shared(Arc::new(self)))
    }
}

/// Whether a field is only ever removed by a statement of its own.
fn is_dropped(name: &str, facts: &Facts) -> bool {
    let removes = |call: &&Call| {
        let path = call.call.arguments.first().and_then(|argument| event_path(&argument.expr));
        &**call.call.ident == "del" && matches!(path, Some([OwnedSegment::Field(known)]) if **known == *name)
    };
    facts.calls.iter().filter(removes).all(|call| call.use_of == Use::Statement)
}

/// The text with a last word that costs nothing: neither the `.` that many programs end with, nor the value of a last
/// assignment, is wanted by anybody. Places in the text stay what they were.
fn runnable(text: &str, facts: &Facts) -> String {
    match facts.last_root {
        // Half an expression must not be completed by it.
        _ if facts.broken => text.to_owned(),
        Some(span) => format!("{}null{}", &text[..span.start()], &text[span.end()..]),
        None => format!("{text}\nnull"),
    }
}

fn out_of_bounds(text: &str) -> Option<Span> {
    if text.len() > LONGEST {
        return Some(Span::new(0, 0));
    }
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_BRACKETS {
            return Some(Span::new(at, at + 1));
        }
    }
    None
}

fn refused_call(text: &str, call: &Call) -> Option<Fault> {
    let name = &**call.call.ident;
    if let Some(reason) = refusal(name) {
        let message =
            format!("the function {name} {}; a transform must give the same result after a crash", reason.what());
        return Some(Fault::new(text, "HX1402", call.call.ident.span(), message, reason.cure().into()));
    }
    if !ZONED.contains(&name) {
        return None;
    }
    // The third one, or by its name.
    let positional = call.call.arguments.iter().filter(|argument| argument.ident.is_none()).nth(2);
    let named =
        call.call.arguments.iter().find(|argument| argument.ident.as_ref().is_some_and(|it| &***it == "timezone"));
    let zone = named.or(positional)?;
    let fixed = literal_text(&zone.expr).is_some_and(|zone| !zone.is_empty() && zone != "local");
    let fault = || {
        let message = format!(
            "{name} takes a time zone from outside the event here; a transform must give the same result after a crash"
        );
        let cure = "write the zone's name, such as \"Europe/Berlin\", or leave it out for UTC";
        Fault::new(text, "HX1403", zone.expr.span(), message, cure.into())
    };
    (!fixed).then(fault)
}

fn last(path: &FieldPath) -> &str {
    path.names().last().map_or("", String::as_str)
}

fn sorted(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by(|a, b| (a.line, a.column, a.code).cmp(&(b.line, b.column, b.code)));
    faults.dedup();
    faults
}

fn faults_of(text: &str, list: &DiagnosticList) -> Vec<Fault> {
    list.iter().filter(|diagnostic| diagnostic.is_problem()).map(|diagnostic| fault_of(text, diagnostic)).collect()
}

/// The compiler's own words: the first label says where, the rest says more.
fn fault_of(text: &str, diagnostic: &Diagnostic) -> Fault {
    let primary = diagnostic.labels.iter().find(|label| label.primary).or_else(|| diagnostic.labels.first());
    let span = primary.map_or(Span::new(0, 0), |label| label.span);
    let mut message = format!("the transform does not compile: {}", diagnostic.message);
    if let Some(label) = primary.filter(|label| !label.message.is_empty() && label.message != diagnostic.message) {
        message = format!("{message} ({})", label.message);
    }
    let context = diagnostic.labels.iter().filter(|label| !label.primary).map(|label| label.message.clone());
    let notes = diagnostic.notes.iter().filter_map(|note| match note {
        Note::Hint(text) | Note::Example(text) | Note::Basic(text) | Note::UserErrorMessage(text) => Some(text.clone()),
        Note::CoerceValue => Some("coerce the value to the required type using a coercion function".into()),
        Note::SeeFunctionDocs(_)
        | Note::SeeErrorDocs
        | Note::SeeCodeDocs(_)
        | Note::SeeLangDocs
        | Note::SeeFunctionCharacteristicsDocs
        | Note::SeeRepl
        | Note::SeeDocs(..) => None,
    });
    if matches!(diagnostic.code, UNHANDLED | UNHANDLED_ASSIGNMENT | UNCHECKED_ARGUMENT) {
        let cure = "write ! behind the function's name, and a failure makes the event a dead letter; or ?? and a value \
                    to go on with";
        return Fault::new(text, "HX1401", span, message, cure.into());
    }
    let words: Vec<String> =
        context.chain(notes).map(|word| word.trim().to_owned()).filter(|w| !w.is_empty()).collect();
    let cure = if words.is_empty() { "look at the marked part of the program".to_owned() } else { words.join("; ") };
    Fault::new(text, "HX1401", span, message, cure)
}

impl Fault {
    fn new(text: &str, code: &'static str, span: Span, message: String, cure: String) -> Self {
        let start = (0..=span.start().min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[..line_start].matches('\n').count() + 1;
        let column = text[line_start..start].chars().count() + 1;
        let end =
            (start..=span.end().clamp(start, line_end)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
        let width = text[start..end].chars().count().max(1);
        let shown = &text[line_start..line_end];
        // A tab stays a tab below, so that the carets stand where they belong.
        let blank: String = text[line_start..start].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let excerpt = format!("{shown}\n{blank}{}", "^".repeat(width));
        Self { code, line, column, message, excerpt, cure }
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
