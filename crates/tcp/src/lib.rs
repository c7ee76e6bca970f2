//! TCP as a state machine without input or output
