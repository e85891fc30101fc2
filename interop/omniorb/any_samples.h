// The samples of chronorb-interop/idl/anys.idl.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#ifndef CHRONORB_INTEROP_ANY_SAMPLES_H
#define CHRONORB_INTEROP_ANY_SAMPLES_H

#include <anys.hh>

const CORBA::ULong SAMPLES = Anys::A_TICKER + 1;

// The sample of that kind; `self` is what A_REFERENCE refers to.
CORBA::Any make_sample(Anys::Sample kind, Anys::Mirror_ptr self);

// Whether the any, made here or elsewhere, is the sample of that kind.
bool is_sample(Anys::Sample kind, const CORBA::Any& any);

#endif
