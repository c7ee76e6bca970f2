//! Conversion of Python values to TOML.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value};

/// Returns a TOML value. `place` is the position of the value, for errors.
pub(crate) fn value(object: &Bound<'_, PyAny>, place: &str) -> PyResult<Value> {
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(flag.is_true().into());
    }
    if object.is_instance_of::<PyInt>() {
        let number: i64 = object.extract().map_err(|_| {
            PyValueError::new_err(format!("{place}: {object} is too large; expected an integer of at most 64 bits"))
        })?;
        return Ok(number.into());
    }
    if object.is_instance_of::<PyFloat>() {
        return finite(object.extract()?, place);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_str()?.into());
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let mut array = Array::new();
        for (index, item) in object.try_iter()?.enumerate() {
            array.push(value(&item?, &format!("{place}.{index}"))?);
        }
        return Ok(array.into());
    }
    if let Ok(table) = object.cast::<PyDict>() {
        let mut inline = InlineTable::new();
        for (key, item) in table {
            let key = text_key(&key, place)?;
            inline.insert(&key, value(&item, &format!("{place}.{key}"))?);
        }
        return Ok(inline.into());
    }
    // Numbers of numpy, which are no numbers of Python.
    if let Ok(number) = object.call_method0("item")
        && !number.is(object)
        && !number.hasattr("item")?
    {
        return value(&number, place);
    }
    let kind = object.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{place}: found a value of type {kind}; expected str, int, float, bool, list or dict"
    )))
}

fn finite(number: f64, place: &str) -> PyResult<Value> {
    if !number.is_finite() {
        return Err(PyValueError::new_err(format!("{place}: found {number}; expected a finite number")));
    }
    Ok(number.into())
}

fn text_key(key: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    match key.cast::<PyString>() {
        Ok(key) => Ok(key.to_str()?.to_owned()),
        Err(_) => {
            let kind = key.get_type().name()?;
            Err(PyTypeError::new_err(format!("{place}: found a key of type {kind}; expected str")))
        }
    }
}

/// Returns a dictionary as the text of a TOML file.
#[pyfunction]
pub(crate) fn to_toml(table: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut document = DocumentMut::new();
    for (key, item) in table {
        let key = text_key(&key, "the scenario")?;
        let value = value(&item, &key)?;
        document.insert(&key, Item::Value(value));
    }
    Ok(document.to_string())
}

/// Returns overrides from a dictionary of dotted paths and values.
pub(crate) fn overrides(set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<fullpipe::scenario::Override>> {
    let mut overrides = Vec::new();
    for (path, item) in set.into_iter().flatten() {
        let path = text_key(&path, "set")?;
        // A text is a string even if it looks like another TOML value.
        let value = value(&item, &path)?.to_string();
        overrides.push(fullpipe::scenario::Override { path, value });
    }
    Ok(overrides)
}
