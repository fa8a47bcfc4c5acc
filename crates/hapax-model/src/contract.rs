//! What must not change silently between two runs of a delivery.

use std::collections::BTreeMap;
use std::fmt;

/// Named facts about a delivery: source, key strategy, conflict mode, target. Stored with progress and compared at
/// every start; the text is kept, not only a hash, so that a refused start can say what changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contract(BTreeMap<String, String>);

/// Facts that also identify a renamed workflow: same source, same target.
pub const SOURCE: &str = "source";
/// The target's identity, as the live target gives it.
pub const TARGET: &str = "target";
/// Key strategy and encoding version.
pub const KEY: &str = "key";
/// Conflict mode.
pub const MODE: &str = "mode";

/// One fact that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which fact.
    pub name: String,
    /// What progress remembers; empty if it had none.
    pub was: String,
    /// What is configured or found now; empty if there is none.
    pub is: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was \"{}\", is \"{}\"", self.name, self.was, self.is)
    }
}

impl Contract {
    /// With one more fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// A fact by name; empty if it was never stated.
    #[must_use]
    pub fn fact(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Every fact that differs between what `self` remembers and what `now` says.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(now.0.keys()).collect();
        names
            .into_iter()
            .filter(|name| self.fact(name) != now.fact(name))
            .map(|name| Difference { name: name.clone(), was: self.fact(name).into(), is: now.fact(name).into() })
            .collect()
    }

    /// Whether two deliveries read the same source into the same target: a renamed workflow, or a clash.
    #[must_use]
    pub fn same_ends(&self, other: &Self) -> bool {
        self.fact(SOURCE) == other.fact(SOURCE) && self.fact(TARGET) == other.fact(TARGET)
    }

    /// The stored form: a JSON object with sorted names.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(&self.0).expect("a map of strings is always JSON")
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// If the text is not a JSON object of strings.
    pub fn from_text(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a change is named, both ways, and nothing else is. Method: change, add and remove a fact.
    #[test]
    fn every_changed_fact_is_named() {
        let was = Contract::default().with(SOURCE, "file:a").with(KEY, "h1:id");
        let is = Contract::default().with(SOURCE, "file:a").with(KEY, "h1:order_id").with(MODE, "append");
        let names: Vec<_> = was.differences(&is).into_iter().map(|d| d.to_string()).collect();
        assert_eq!(names, ["key was \"h1:id\", is \"h1:order_id\"", "mode was \"\", is \"append\""]);
        assert!(was.differences(&was).is_empty());
        assert_eq!(Contract::from_text(&was.to_text()).ok(), Some(was));
    }
}
