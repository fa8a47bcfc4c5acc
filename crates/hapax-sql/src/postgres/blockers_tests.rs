//! Tests of `blockers`.
