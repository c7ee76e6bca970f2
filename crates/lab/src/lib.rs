//! Turns a description into a world, drives it and writes the run archive
