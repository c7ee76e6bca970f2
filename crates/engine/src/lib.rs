//! Event calendar, FIFO lanes and lazily re-armed timers
