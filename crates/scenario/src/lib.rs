//! The scenario language: one schema, spans, errors and a plain description
