/* Slots of Python's objects, read and written as memory: where they are is asked of their classes, by `find_slot`. */
#ifndef SLOTS_H
#define SLOTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>
#include <structmember.h>

/* The slot of an object of that class, or of one that inherits from it. */
#define AT(object, class, name) (*(PyObject **)((char *)(object) + class##_##name))

static inline int find_slot(PyTypeObject *class, const char *name, Py_ssize_t *place)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)class, name);

    if (found == NULL)
        return 0;
    const int slot = Py_IS_TYPE(found, &PyMemberDescr_Type) &&
                     ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX;
    if (slot)
        *place = ((PyMemberDescrObject *)found)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", class->tp_name, name);
    Py_DECREF(found);
    return slot;
}

/* Put `value`, which is ours, into a slot. */
static inline void put(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;

    *slot = value;
    Py_XDECREF(old);
}

static inline void put_new(PyObject **slot, PyObject *value)
{
    put(slot, Py_NewRef(value));
}

static inline int is_false(PyObject *value)
{
    return value == Py_False || value == Py_None || (value != NULL && PyObject_IsTrue(value) == 0);
}

static inline int is_empty_dict(PyObject *value)
{
    return value != NULL && PyDict_CheckExact(value) && PyDict_GET_SIZE(value) == 0;
}

static inline int is_empty_list(PyObject *value)
{
    return value != NULL && PyList_CheckExact(value) && PyList_GET_SIZE(value) == 0;
}

static inline int is_float(PyObject *value)
{
    return value != NULL && PyFloat_CheckExact(value);
}

static inline int is_int(PyObject *value)
{
    return value != NULL && PyLong_CheckExact(value);
}

/* A float of a slot. One that nobody else has is written over: 1, or 0 with an exception. */
static inline int put_float(PyObject **slot, double value)
{
    PyObject *old = *slot;

    if (is_float(old) && Py_REFCNT(old) == 1) {
        ((PyFloatObject *)old)->ob_fval = value;
        return 1;
    }
    PyObject *made = PyFloat_FromDouble(value);
    if (made == NULL)
        return 0;
    put(slot, made);
    return 1;
}

static inline int put_int(PyObject **slot, long long value)
{
    PyObject *made = PyLong_FromLongLong(value);

    if (made == NULL)
        return 0;
    put(slot, made);
    return 1;
}

static inline int add_float(PyObject **slot, double value)
{
    return put_float(slot, PyFloat_AS_DOUBLE(*slot) + value);
}

/* The digit of an int that has one, is positive, and that nobody else has; or NULL. (Small ints are the interpreter's.) */
static inline digit *only_digit(PyObject *value)
{
    if (!PyLong_CheckExact(value) || Py_REFCNT(value) != 1)
        return NULL;
#if PY_VERSION_HEX >= 0x030C0000
    _PyLongValue *held = &((PyLongObject *)value)->long_value;
    return held->lv_tag == 1 << 3 ? held->ob_digit : NULL; /* one digit, and neither sign nor mark */
#else
    return Py_SIZE(value) == 1 ? ((PyLongObject *)value)->ob_digit : NULL;
#endif
}

/* Add what is not negative to an int that can be written over, like a float; 0: nothing was done. */
static inline int add_in_place(PyObject *held, long long value)
{
    digit *own = only_digit(held);

    if (own == NULL || value >= PyLong_BASE - (long long)*own)
        return 0;
    *own += (digit)value;
    return 1;
}

/* Add what is not negative. */
static inline int add_int(PyObject **slot, long long value)
{
    int over;

    if (add_in_place(*slot, value))
        return 1;
    const long long before = PyLong_AsLongLongAndOverflow(*slot, &over);

    if (!over && before <= LLONG_MAX - value)
        return !(before == -1 && PyErr_Occurred()) && put_int(slot, before + value);
    PyObject *more = PyLong_FromLongLong(value), *sum = more == NULL ? NULL : PyNumber_Add(*slot, more);
    Py_XDECREF(more);
    if (sum != NULL)
        put(slot, sum);
    return sum != NULL;
}

static inline int add_longest(PyObject **slot, double value)
{
    return value <= PyFloat_AS_DOUBLE(*slot) || put_float(slot, value);
}

static inline int add_bucket(PyObject *buckets, Py_ssize_t number)
{
    return add_int(&((PyListObject *)buckets)->ob_item[number], 1);
}

static inline int done_by(PyObject *called)
{
    Py_XDECREF(called);
    return called != NULL;
}

#endif
