//! The naming service, as a client sees it.

use chronorb::prelude::*;
use thiserror::Error;

use crate::cos_naming::{
    NameComponent, NamingContextExt, RebindErrorBuf, ResolveErrorBuf, ResolveStrErrorBuf,
};
