//! Real-time Linux for chronorb: threads, priorities, priority-inheritance mutex, clocks.
