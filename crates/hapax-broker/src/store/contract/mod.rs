//! What every store must do: the contract of the five traits as tests, generic over how a store is made.
