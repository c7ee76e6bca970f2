//! Sweeps, replications, published values and claims with verdicts
