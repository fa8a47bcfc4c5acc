//! What is wrong with a configuration: a fact, its place, and the cure; as many as there are, sorted by place.
//!
//! Invariant: no message holds a secret; the same problem at the same place is told once.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// More problems than this are counted, not listed.
const MOST_LISTED: usize = 100;

/// Where something stands in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The file's name, as it was given.
    pub(crate) file: Arc<str>,
    /// Counted from 1; 0 means the file as a whole.
    pub(crate) line: usize,
    /// Counted from 1, in characters.
    pub(crate) column: usize,
}

impl Place {
    /// The file as a whole.
    pub(crate) fn whole(file: &str) -> Self {
        Self { file: file.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{line}:{}", self.file, self.column),
        }
    }
}

/// One thing that is wrong, or worth a warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    /// Where.
    pub(crate) place: Place,
    /// The code of the page that explains it.
    pub(crate) code: &'static str,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) cure: String,
}

impl Problem {
    pub(crate) fn new(place: &Place, code: &'static str, message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { place: place.clone(), code, message: message.into(), cure: cure.into() }
    }

    /// For programs: file, line, column, code, message, cure.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "file": &*self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "code": self.code,
            "message": self.message,
            "cure": self.cure,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}\n    {}", self.place, self.code, self.message, self.cure)
    }
}

/// All that is wrong with a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems {
    listed: BTreeSet<Problem>,
    left_out: usize,
}

impl Problems {
    /// Notes a problem.
    pub(crate) fn add(&mut self, problem: Problem) {
        if self.listed.len() < MOST_LISTED {
            self.listed.insert(problem);
        } else if !self.listed.contains(&problem) {
            self.left_out += 1;
        }
    }

    /// Whether nothing is wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The problems by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.listed.iter()
    }

    /// For programs: the problems, and how many more there are.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let listed: Vec<_> = self.iter().map(Problem::to_json).collect();
        serde_json::json!({ "problems": listed, "more": self.left_out })
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { listed: BTreeSet::from([problem]), left_out: 0 }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.listed.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Problems {}

/// The codes of the configuration. Never reused; each has a page under `docs/errors/`.
pub(crate) mod code {
    /// A file or folder cannot be read, or a folder holds no configuration.
    pub(crate) const UNREADABLE: &str = "HX1001";
    /// A bound on the configuration itself: size, depth, number of nodes or workflows.
    pub(crate) const TOO_LARGE: &str = "HX1002";
    /// The text is no YAML.
    pub(crate) const SYNTAX: &str = "HX1003";
    /// `{ url: ${X} }`: braces of a variable read as braces of YAML.
    pub(crate) const UNQUOTED_VARIABLE: &str = "HX1004";
    /// A key stands twice in one mapping.
    pub(crate) const DUPLICATE_KEY: &str = "HX1005";
    /// YAML that a configuration has no use for: tags, several documents, a list as key, no mapping at the top.
    pub(crate) const UNUSED_YAML: &str = "HX1006";
    /// The file is not UTF-8.
    pub(crate) const NOT_UTF8: &str = "HX1007";
    /// A field that nobody knows.
    pub(crate) const UNKNOWN_FIELD: &str = "HX1010";
    /// A value of the wrong type.
    pub(crate) const WRONG_TYPE: &str = "HX1011";
    /// A value outside its bounds.
    pub(crate) const OUT_OF_BOUNDS: &str = "HX1012";
    /// A name that is none of those allowed.
    pub(crate) const UNKNOWN_NAME: &str = "HX1013";
    /// A field that must be there is missing.
    pub(crate) const MISSING_FIELD: &str = "HX1014";
    /// A field stands there without a value.
    pub(crate) const NO_VALUE: &str = "HX1015";
    /// A text that does not have the form that its field needs.
    pub(crate) const MALFORMED: &str = "HX1016";
    /// None, or several, of fields of which exactly one is needed.
    pub(crate) const CHOOSE_ONE: &str = "HX1017";
    /// A variable is not set.
    pub(crate) const MISSING_VARIABLE: &str = "HX1020";
    /// `${…}` is not closed, or holds something else.
    pub(crate) const MALFORMED_VARIABLE: &str = "HX1021";
    /// The file of `${file:…}` cannot be read.
    pub(crate) const UNREADABLE_SECRET: &str = "HX1022";
    /// Two workflows have one id.
    pub(crate) const DUPLICATE_WORKFLOW: &str = "HX1030";
    /// Two sinks of a workflow have one name.
    pub(crate) const DUPLICATE_SINK: &str = "HX1031";
    /// Two files of a folder set the same field.
    pub(crate) const SET_TWICE: &str = "HX1032";
    /// Fields that cannot be true together.
    pub(crate) const CONTRADICTION: &str = "HX1033";
    /// Something that a later version will have.
    pub(crate) const NOT_YET: &str = "HX1040";
    /// A kind of system that this edition was built without.
    #[cfg_attr(
        all(feature = "broker", feature = "mysql", feature = "postgres", feature = "transform", not(test)),
        expect(dead_code, reason = "a whole edition never says it")
    )]
    pub(crate) const NOT_IN_EDITION: &str = "HX1300";
    /// The URL of a MySQL sink without a database, in which our tables would lie.
    #[cfg_attr(not(any(feature = "mysql", test)), expect(dead_code, reason = "an edition without MySQL"))]
    pub(crate) const NO_DATABASE: &str = "HX1490";
    /// `http.listen` is an address that other machines can reach, and there is no token.
    pub(crate) const OPEN_TO_ALL: &str = "HX1350";
    /// `alerts` in a build without outgoing HTTP.
    pub(crate) const NO_HTTP: &str = "HX1351";
    /// `broker.listen` is an address that other machines can reach.
    #[cfg_attr(not(any(feature = "broker", test)), expect(dead_code, reason = "an edition without the broker"))]
    pub(crate) const BROKER_OPEN: &str = "HX1500";
    /// `broker.topicDefaults` names what no topic can be told.
    #[cfg_attr(not(any(feature = "broker", test)), expect(dead_code, reason = "an edition without the broker"))]
    pub(crate) const BROKER_TOPIC_SETTING: &str = "HX1501";
    /// A test names a workflow or a sink that is not there.
    pub(crate) const UNKNOWN_IN_TEST: &str = "HX1450";
    /// A path that is no pattern for files.
    pub(crate) const BAD_PATTERN: &str = "HX1470";
    /// A warning: a field that changes nothing.
    pub(crate) const NO_EFFECT: &str = "HX1050";

    /// Every code above, for the tests that compare them with their pages.
    #[cfg(test)]
    pub(crate) const ALL: &[&str] = &[
        UNREADABLE,
        TOO_LARGE,
        SYNTAX,
        UNQUOTED_VARIABLE,
        DUPLICATE_KEY,
        UNUSED_YAML,
        NOT_UTF8,
        UNKNOWN_FIELD,
        WRONG_TYPE,
        OUT_OF_BOUNDS,
        UNKNOWN_NAME,
        MISSING_FIELD,
        NO_VALUE,
        MALFORMED,
        CHOOSE_ONE,
        MISSING_VARIABLE,
        MALFORMED_VARIABLE,
        UNREADABLE_SECRET,
        DUPLICATE_WORKFLOW,
        DUPLICATE_SINK,
        SET_TWICE,
        CONTRADICTION,
        NOT_YET,
        NOT_IN_EDITION,
        NO_DATABASE,
        OPEN_TO_ALL,
        NO_HTTP,
        BROKER_OPEN,
        BROKER_TOPIC_SETTING,
        UNKNOWN_IN_TEST,
        BAD_PATTERN,
        NO_EFFECT,
    ];
}
