//! A real-time CORBA ORB: remote calls that keep their priority end to end.
