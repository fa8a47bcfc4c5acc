//! Tests of `commit`.
