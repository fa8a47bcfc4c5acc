//! What differs between the configuration that runs and the one that was just read. Pure.

use crate::config::{Config, Workflow};

/// What a reload does, and what it cannot do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Workflows that are new.
    pub(super) added: Vec<String>,
    /// Workflows that are gone.
    pub(super) removed: Vec<String>,
    /// Workflows that are another now.
    pub(super) changed: Vec<String>,
    /// Fields of the process as a whole: they change only when it is started again.
    pub(super) need_restart: Vec<&'static str>,
}

impl Changes {
    /// Compares; where in the file a workflow stands does not matter.
    pub(super) fn between(old: &Config, new: &Config) -> Self {
        let mut changes = Self::default();
        for workflow in &new.workflows {
            match old.workflows.iter().find(|known| known.id == workflow.id) {
                None => changes.added.push(workflow.id.clone()),
                Some(known) if !same(known, workflow) => changes.changed.push(workflow.id.clone()),
                Some(_) => {}
            }
        }
        let gone = old.workflows.iter().filter(|known| new.workflows.iter().all(|workflow| workflow.id != known.id));
        changes.removed = gone.map(|workflow| workflow.id.clone()).collect();
        let whole = [
            ("state", old.state == new.state),
            ("memory", old.memory == new.memory),
            ("http", old.http == new.http),
            ("alerts", old.webhook == new.webhook),
        ];
        changes.need_restart = whole.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect();
        changes
    }

    /// Whether a workflow is another now, new or gone.
    pub(super) fn touches(&self, workflow: &str) -> bool {
        [&self.added, &self.removed, &self.changed].iter().any(|ids| ids.iter().any(|id| id == workflow))
    }

    /// The new workflows in a process that keeps all else as it was.
    pub(super) fn applied(old: &Config, new: Config) -> Config {
        let Config { state, memory, http, webhook, .. } = old.clone();
        Config { state, memory, http, webhook, ..new }
    }
}

fn same(a: &Workflow, b: &Workflow) -> bool {
    a.source == b.source && a.transform == b.transform && a.sinks == b.sinks && a.delivery == b.delivery
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hapax.yaml");
        std::fs::write(&path, text).expect("a file");
        crate::config::load(&path, &crate::config::System).unwrap_or_else(|problems| panic!("{problems}")).config
    }

    const OLD: &str = "state: none
workflows:
  - { id: a, source: { generate: { count: 1 } } }
  - { id: b, source: { generate: { count: 1 } } }
  - { id: c, source: { generate: { count: 1 } } }
";

    /// Goal: only what differs is told. Method: each kind of difference; a moved workflow is none.
    #[test]
    fn changes_are_told_by_workflow() {
        assert_eq!(Changes::between(&config(OLD), &config(OLD)), Changes::default());
        let new = "state: none
memory: 64MiB
http: {}
workflows:
  - { id: c, source: { generate: { count: 1 } } }
  - { id: b, source: { generate: { count: 2 } } }
  - { id: d, source: { generate: { count: 1 } } }
";
        let changes = Changes::between(&config(OLD), &config(new));
        let expected = Changes {
            added: vec!["d".into()],
            removed: vec!["a".into()],
            changed: vec!["b".into()],
            need_restart: vec!["memory", "http"],
        };
        assert_eq!(changes, expected);
        let applied = Changes::applied(&config(OLD), config(new));
        assert_eq!((applied.http, applied.workflows.len()), (None, 3));
        assert_eq!(applied.memory, config(OLD).memory);
    }
}
