//! How the program ends: a code, and for failures a message on standard error.

use std::fmt;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit_code: u8,
    /// The code of the page that explains it, if there is one.
    pub(crate) code: Option<&'static str>,
    /// What happened, where, and the cure.
    pub(crate) message: String,
    /// Whether it may pass by itself: a database that is away.
    pub(crate) may_pass: bool,
}

/// Usage or configuration.
pub(crate) const USAGE: u8 = 2;

impl Failure {
    /// A failure that ends with code 1.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { exit_code: 1, code: Some(code), message: message.into(), may_pass: false }
    }

    /// A configuration with problems, which have their own codes.
    pub(crate) fn problems(message: String) -> Self {
        Self { exit_code: USAGE, code: None, message, may_pass: false }
    }

    /// What a source's error is to a run that meets it.
    pub(crate) fn of_run(error: hapax_engine::source::SourceError) -> Self {
        use hapax_engine::source::SourceReaction;
        match error.reaction() {
            SourceReaction::Retry => Self { may_pass: true, ..error.into() },
            SourceReaction::StopForPerson => Self::from(error).with_exit(5),
        }
    }

    /// The same failure with another exit code.
    pub(crate) fn with_exit(self, exit_code: u8) -> Self {
        Self { exit_code, ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.code {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Failure {}

impl From<hapax_engine::sink::SinkError> for Failure {
    fn from(error: hapax_engine::sink::SinkError) -> Self {
        use hapax_engine::sink::Reaction;
        let exit_code = match error.reaction() {
            Reaction::Retry | Reaction::InDoubt => 1,
            Reaction::Fenced => 4,
            Reaction::Stop(code) => code,
        };
        let may_pass = matches!(error.reaction(), Reaction::Retry);
        Self { exit_code, code: Some(error.code()), message: error.to_string(), may_pass }
    }
}

impl From<hapax_engine::source::SourceError> for Failure {
    fn from(error: hapax_engine::source::SourceError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<hapax_engine::runtime::Stop> for Failure {
    fn from(stop: hapax_engine::runtime::Stop) -> Self {
        Self::new(stop.code, stop.message).with_exit(stop.exit_code)
    }
}

impl From<Failure> for hapax_engine::runtime::Stop {
    fn from(failure: Failure) -> Self {
        Self { exit_code: failure.exit_code, code: failure.code.unwrap_or("HX5009"), message: failure.message }
    }
}

#[cfg(test)]
mod tests {
    use hapax_engine::runtime::Stop;

    use super::*;

    /// Goal: a delivery that ends without a page of its own leads to one. Method: only the mapping: what has no code is a
    /// configuration's problems, which end a process before it has deliveries; else only a bug leads here.
    #[test]
    fn a_stop_always_has_a_page() {
        let stop = Stop::from(Failure::problems("three problems".into()));
        assert_eq!((stop.exit_code, stop.code, stop.message.as_str()), (2, "HX5009", "three problems"));
        assert_eq!(Stop::from(Failure::new("HX5001", "x").with_exit(3)).code, "HX5001");
    }
}
