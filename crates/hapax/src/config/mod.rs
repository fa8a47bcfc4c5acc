//! The configuration: from files to values that the rest of the program can trust.
//!
//! The way of a file, which is also the reading order: `files` (read, put together) → `yaml` (text to nodes) →
//! `substitute` (variables) → `check` (against the tables of `schema`) → `merge` (defaults) → `rules` (several fields
//! at once) → `build` (typed). Invariant: all problems are told at once; only a configuration without any is built.
//! Not here: whether a promise can be kept (the audit), what the live targets say (the connectors).

#[cfg(feature = "broker")]
mod broker;
mod build;
mod check;
pub(crate) mod checked;
mod files;
mod fixture;
mod json_schema;
mod merge;
pub(crate) mod node;
pub(crate) mod problem;
mod program;
#[cfg(test)]
mod reference;
mod rules;
mod schema;
mod show;
mod substitute;
mod value;
mod yaml;

use std::path::Path;

#[cfg(feature = "broker")]
pub(crate) use broker::{Broker, BrokerStore};
#[cfg(feature = "mysql")]
pub(crate) use checked::MysqlSink;
#[cfg(feature = "postgres")]
pub(crate) use checked::PostgresSink;
pub(crate) use checked::{
    Columns, Config, Http, Secret, Sink, Source, SqliteSink, StateUrl, TableSink, Target, Workflow,
};
pub(crate) use files::System;
pub(crate) use fixture::{Fixture, Input, Reject, json_text};
pub(crate) use json_schema::json_schema;
pub(crate) use node::{Data, Node};
use problem::Problems;
pub(crate) use substitute::Surroundings;

/// The file that is read when none is named.
pub(crate) const DEFAULT_FILE: &str = "hapax.yaml";
/// The most workflows of a configuration.
const MOST_WORKFLOWS: usize = 10_000;
/// The most tests of a configuration.
const MOST_TESTS: usize = 10_000;

/// A configuration in which nothing is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The typed form.
    pub(crate) config: Config,
    /// What has no effect, and other things worth a word.
    pub(crate) warnings: Problems,
    effective: value::Value,
}

impl Loaded {
    /// The merged configuration with every default, as YAML; secrets print as `***`.
    pub(crate) fn to_yaml(&self) -> String {
        show::to_yaml(&self.effective)
    }

    /// The same as JSON.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        show::to_json(&self.effective)
    }
}

/// Reads and checks the file or folder at `path`.
///
/// # Errors
/// Everything that is wrong with it, sorted by place.
pub(crate) fn load(path: &Path, surroundings: &dyn Surroundings) -> Result<Loaded, Problems> {
    let mut problems = Problems::default();
    let (mut tree, folder) = files::read_tree(path, surroundings, &mut problems)?;
    substitute::substitute(&mut tree, &folder, surroundings, &mut problems);
    let written = check::check(&tree, &schema::Kind::Object(&schema::ROOT), "", &mut problems);
    let mut warnings = Problems::default();
    let effective = written.map(|written| merge::effective(&written));
    if let Some(effective) = &effective {
        rules::check_rules(effective, &mut problems, &mut warnings);
    }
    match effective {
        Some(effective) if problems.is_empty() => {
            let config = build::build(&effective, &folder).expect("a configuration without problems has all it needs");
            Ok(Loaded { config, warnings, effective })
        }
        Some(_) | None => Err(problems),
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
