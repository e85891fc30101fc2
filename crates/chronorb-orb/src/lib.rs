//! The ORB core of chronorb: object references, POA, RT-CORBA thread pools.
