//! `chronorb ns gc`: contexts without a name, and bindings of objects that do not exist.

use std::thread;
use std::time::Duration;

use chronorb_naming::idl::cos_naming::{DestroyError, NamingContext, ResolveErrorBuf};
use chronorb_orb::{Object, OrbConfig};
use chronorb_rt::visible;

use super::arguments::GcArguments;
use super::list::{ObjectState, states};
use super::names::{NameServer, NsError, text_of, views};
use super::survey::{ContextProblem, HomeServer, Survey, SurveyBinding};
use crate::output::print;

/// Finds what is not needed, and removes it if that is asked for; `false` if something is left.
pub(super) fn run(arguments: &GcArguments, config: OrbConfig) -> Result<bool, NsError> {
    let names = NameServer::connect(&arguments.server, config)?.bounded(&arguments.bound);
    // The list of all contexts is older than the search by name: contexts that are created
    // meanwhile are in neither or in the search only.
    let mut home = HomeServer::of(&names)?;
    let survey = Survey::take(&names, &mut home, false)?;
    let dead = dead_bindings(&names, &survey, arguments.unreachable);
    let mut orphans = orphans(&home, &survey);
    for (context, binding, state) in &dead {
        let name = format!("{}{}", survey.name(*context), text_of(&binding.component));
        print(&format!("{}  {state}\n", visible(&name)))?;
    }
    for orphan in &orphans {
        print(&format!("context without a name  {}\n", orphan.ior()))?;
    }
    if home.listed.is_none() {
        eprintln!("chronorb: the server does not list contexts without a name");
    }
    let found = dead.len() + orphans.len();
    if !arguments.yes {
        if found > 0 {
            eprintln!("chronorb: nothing is removed without --yes");
        }
        return Ok(found == 0);
    }
    let mut removed = 0;
    for (context, binding, _) in &dead {
        removed += usize::from(unbind(&names, &survey, *context, binding)?);
    }
    if !orphans.is_empty() {
        // A client may be about to bind a context that it has made.
        thread::sleep(Duration::from_secs(arguments.grace));
        let again = Survey::take(&names, &mut home, false)?;
        orphans.retain(|orphan| again.number(orphan).is_none());
        removed += destroy(&names, &orphans)?;
    }
    eprintln!("chronorb: {removed} of {found} removed");
    Ok(removed == found)
}

/// A binding of a context, and the state of its object.
type DeadBinding<'a> = (usize, &'a SurveyBinding, ObjectState);

/// Returns the bindings whose objects do not exist or, if that is asked for, cannot be reached.
fn dead_bindings<'a>(
    names: &NameServer,
    survey: &'a Survey,
    unreachable: bool,
) -> Vec<DeadBinding<'a>> {
    let contexts = survey.contexts.iter().enumerate();
    let bindings = contexts.flat_map(|(number, context)| {
        let bindings = context.bindings.iter();
        bindings.filter_map(move |binding| Some((number, binding, binding.object.as_ref()?)))
    });
    let (mut dead, mut asked) = (Vec::new(), Vec::new());
    for (number, binding, object) in bindings {
        match survey.number(object) {
            Some(target) => {
                let problem = &survey.contexts[target].problem;
                if matches!(problem, Some(ContextProblem::Destroyed)) {
                    dead.push((number, binding, ObjectState::Gone));
                }
            }
            // A context of another server is not removed because that server is down.
            None if binding.is_context => {}
            None => asked.push((number, binding, object)),
        }
    }
    let objects: Vec<_> = asked.iter().map(|(.., object)| *object).collect();
    let found = states(&names.client, &objects);
    for ((number, binding, _), state) in asked.into_iter().zip(found) {
        match state {
            ObjectState::Gone => dead.push((number, binding, state)),
            ObjectState::Unreachable(_) if unreachable => dead.push((number, binding, state)),
            ObjectState::Unreachable(_) | ObjectState::Exists => {}
        }
    }
    dead
}

/// The contexts of the server that no name leads to.
fn orphans(home: &HomeServer, survey: &Survey) -> Vec<Object> {
    let listed = home.listed.iter().flatten();
    let orphans = listed.filter(|context| survey.number(context).is_none());
    orphans.cloned().collect()
}

/// Removes a binding if it still has the object that was found; `false` if it has another.
fn unbind(
    names: &NameServer,
    survey: &Survey,
    number: usize,
    binding: &SurveyBinding,
) -> Result<bool, NsError> {
    let context = &survey.contexts[number].context;
    let name = [binding.component.as_view()];
    let failed = |failure| {
        let name = format!("{}{}", survey.name(number), text_of(&binding.component));
        names.error(&name, std::slice::from_ref(&binding.component), failure)
    };
    match context.resolve(&name) {
        Ok(object) if object == binding.object => {}
        Ok(_) | Err(ResolveErrorBuf::NotFound(_)) => return Ok(false),
        Err(error) => return Err(failed(error.into())),
    }
    match context.unbind(&name) {
        Ok(()) => Ok(true),
        Err(ResolveErrorBuf::NotFound(_)) => Ok(false),
        Err(error) => Err(failed(error.into())),
    }
}

/// Empties contexts and destroys them, and returns how many are destroyed.
fn destroy(names: &NameServer, contexts: &[Object]) -> Result<usize, NsError> {
    let contexts: Vec<_> = contexts
        .iter()
        .map(NamingContext::unchecked_narrow)
        .collect();
    for context in &contexts {
        for binding in names.bindings_of(context, ORPHAN, 0)? {
            match context.unbind(&views(&binding.binding_name)) {
                Ok(()) | Err(ResolveErrorBuf::NotFound(_)) => {}
                Err(error) => return Err(names.error(ORPHAN, &binding.binding_name, error.into())),
            }
        }
    }
    let mut destroyed = 0;
    for context in &contexts {
        match context.destroy() {
            Ok(()) => destroyed += 1,
            // A client has bound something since.
            Err(DestroyError::NotEmpty(_)) => {}
            Err(DestroyError::System(exception)) => {
                return Err(names.client.failed(ORPHAN, exception).into());
            }
        }
    }
    Ok(destroyed)
}

/// The name of a context without one, for messages.
const ORPHAN: &str = "(a context without a name)";
